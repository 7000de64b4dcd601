"""A shop goes under review while everybody asks: it is in no answer, count or cache within six seconds (V3, C1)."""

import time
from pathlib import Path
from typing import Final

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.protocol import GenerationEditor
from service.app import create_app
from service.reports.opening import QueueSettings
from service.settings.service import Settings
from tests.engines.conftest import Engine
from tests.engines.following.breaking import BreakingEditor
from tests.engines.following.followed import FollowedIndex
from tests.engines.following.lamp_world import lamp_world, now
from tests.engines.following.polling import SUGGEST, Answer, Poller, answers
from tests.support.callers import issue
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.reporting import stored_in
from tests.support.served import get, post, served

_BOUND_S: Final = 6.0
_STAYS_S: Final = 1.5


class _Shown(BreakingEditor):
    """A real editor that remembers when readers could see what was written."""

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


def _step(followed: FollowedIndex) -> float:
    """One micro-batch; returns when it was shown."""
    shown: list[_Shown] = []

    def around(editor: GenerationEditor) -> GenerationEditor:
        shown.append(_Shown(editor))
        return shown[0]

    with followed.follower(around) as follower:
        assert follower.step().applied == 1
    return shown[0].at


def _assert_all_become(expected: dict[str, Answer], poller: Poller, shown_at: float) -> None:
    """Every answer is as expected in time, and stays so."""
    became = poller.wait_for(expected, shown_at, _BOUND_S + 4)
    time.sleep(_STAYS_S)
    wrong = [observed for observed in poller.since(shown_at) if observed.answer != expected[observed.name]]
    last = {observed.name: round(observed.asked_at - shown_at, 2) for observed in wrong}
    assert became, f"not after {_BOUND_S + 4} s: {last}"
    assert max(last.values(), default=0.0) <= _BOUND_S, f"seconds after the refresh: {last}"
