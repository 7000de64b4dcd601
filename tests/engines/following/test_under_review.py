"""A shop goes under review while everybody asks: it is in no answer, count or cache within six seconds (V3, C1)."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pytest

from indexer.jobs.shop_visibility import set_visibility
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.protocol import GenerationEditor
from service.app import create_app
from service.reports.opening import QueueSettings
from service.settings.service import Settings
from tests.engines.conftest import Engine
from tests.engines.following.followed import BreakingEditor, FollowedIndex, lamp_world, now
from tests.support.callers import issue, stored_in
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.served import Reply, get, post, served

# One call of each read tool whose answer a shop is in, or may be counted in.
CALLS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "by name": ("find_shop", {"query": "lumen"}),
    "browsing": ("find_shop", {"query": ""}),
    "by category": ("find_shop", {"query": "", "category": "lamps"}),
    "by shared category": ("find_shop", {"query": "", "category": "home"}),
    "by category words": ("find_shop", {"query": "lamps"}),
    "shop": ("get_shop", {"shop_domain": "lamp"}),
    "shop by domain": ("get_shop", {"shop_domain": "lumen.internal"}),
    "all coupons": ("list_coupons", {}),
    "coupons": ("list_coupons", {"shop_domain": "lumen.internal"}),
    "categories": ("list_categories", {}),
    "shipping": ("get_shipping_policy", {"shop_domain": "lamp", "country": "DE"}),
    "policies": ("get_shop_policies", {"shop_domain": "lamp", "country": "AT"}),
    "trust": ("get_trust", {"shop_domain": "lamp"}),
    "checkout": ("resolve_checkout_url", {"offer_id": "o-lamp", "affiliate": True}),
    "monetized": ("monetize_offer", {"offer_id": "o-lamp"}),
    "conflict": ("resolve_conflict", {"from_shop_id": "lamp", "to_shop_id": "moss"}),
    "candidates": ("resolve_conflict", {"from_shop_id": "moss"}),
}
SUGGEST: Final = "/suggest?q=lum"
SUGGESTED: Final = "suggestions"

Answer = tuple[int, Any]
_BOUND_S: Final = 6.0
_STAYS_S: Final = 1.5


@dataclass(frozen=True, slots=True)
class Observation:
    asked_at: float
    name: str
    answer: Answer


def answers(base: str, token: str) -> dict[str, Answer]:
    return {name: _ask(base, token, name) for name in (*CALLS, SUGGESTED)}


def _ask(base: str, token: str, name: str) -> Answer:
    if name == SUGGESTED:
        return _answer(get(base, SUGGEST))
    tool, arguments = CALLS[name]
    return _answer(post(base, f"/tool/{tool}", arguments, x_api_token=token))


def _answer(reply: Reply) -> Answer:
    return reply.status, reply.json


class Poller(threading.Thread):
    """Asks all calls in turn until it is stopped, and remembers what it heard."""

    def __init__(self, base: str, token: str) -> None:
        super().__init__(name="asking")
        self._base = base
        self._token = token
        self._stop_asked = threading.Event()
        self.observations: list[Observation] = []

    def run(self) -> None:
        while not self._stop_asked.is_set():
            for name in (*CALLS, SUGGESTED):
                asked_at = time.monotonic()
                self.observations.append(Observation(asked_at, name, _ask(self._base, self._token, name)))

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def since(self, start: float) -> list[Observation]:
        return [one for one in self.observations if one.asked_at >= start]

    def wait_for(self, expected: Mapping[str, Answer], start: float, seconds: float) -> bool:
        while time.monotonic() < start + seconds:
            newest = {one.name: one.answer for one in self.since(start)}
            if newest == dict(expected):
                return True
            time.sleep(0.02)
        return False


class _Shown(BreakingEditor):
    def __init__(self, editor: GenerationEditor) -> None:
        super().__init__(editor)
        self.at = 0.0

    def show(self) -> None:
        super().show()
        self.at = time.monotonic()


def _answers_of(folder: Path, *, known: bool) -> dict[str, Answer]:
    """What a service answers whose index was built from nothing, with the shop or without any word of it."""
    build_into(
        EmbeddedSink(folder / "index"), write_catalogue_directory(folder / "catalogue", **lamp_world(known=known))
    )
    settings = Settings(data_dir=folder / "index", request_timeout=10.0)
    with served(create_app(settings)) as base:
        return answers(base, issue(settings.token_file).text)


@pytest.mark.rule("V3", "C1", "V1.dependents", "G3")
def test_a_shop_under_review_is_in_no_answer_within_six_seconds_and_comes_back_whole(
    engine: Engine, tmp_path: Path
) -> None:
    known, never_known = _answers_of(tmp_path / "known", known=True), _answers_of(tmp_path / "never", known=False)
    assert {status for status, _ in known.values()} == {200}
    assert [name for name in known if known[name] == never_known[name]] == []
    followed = FollowedIndex(tmp_path / "followed", engine.sink, lamp_world())
    followed.build()
    reports = QueueSettings("embedded", tmp_path / "reports.sqlite")
    settings = engine.settings.model_copy(update={"reports_file": reports.path})
    token = issue(settings.token_file).text
    with served(create_app(settings)) as base:
        code = {"shop_domain": "lamp", "code": "LIGHT", "reason": "invalid"}
        assert post(base, "/tool/report_code", code, x_api_token=token).status == 200
        stored = stored_in(reports)
        assert [(row.shop_id, row.code) for row in stored[0]] == [("lamp", "LIGHT")]

        with Poller(base, token) as poller:
            assert poller.wait_for(known, time.monotonic(), 10)
            etag = get(base, SUGGEST).headers["etag"]
            followed.append([now("under_review", 2)])
            _assert_all_become(never_known, poller, _step(followed))
            assert get(base, SUGGEST, if_none_match=etag).status == 200
            assert stored_in(reports) == stored

            followed.append([now("public", 3)])
            _assert_all_become(known, poller, _step(followed))

            # Hidden by the command, it is as unknown.
            _, (hidden,) = set_visibility(followed.sink, followed.states, ["lamp"], public=False, wait=10)
            assert (hidden.order, hidden.marked) == ({"version": 3}, True)
            _assert_all_become(never_known, poller, time.monotonic())


def _step(followed: FollowedIndex) -> float:
    shown: list[_Shown] = []

    def around(editor: GenerationEditor) -> GenerationEditor:
        shown.append(_Shown(editor))
        return shown[0]

    with followed.follower(around) as follower:
        assert follower.step().applied == 1
    return shown[0].at


def _assert_all_become(expected: dict[str, Answer], poller: Poller, shown_at: float) -> None:
    became = poller.wait_for(expected, shown_at, _BOUND_S + 4)
    time.sleep(_STAYS_S)
    wrong = [observed for observed in poller.since(shown_at) if observed.answer != expected[observed.name]]
    last = {observed.name: round(observed.asked_at - shown_at, 2) for observed in wrong}
    assert became, f"not after {_BOUND_S + 4} s: {last}"
    assert max(last.values(), default=0.0) <= _BOUND_S, f"seconds after the refresh: {last}"
