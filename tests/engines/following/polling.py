"""Every read tool asked again and again, by a thread, so that all caches are warm whenever something changes."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from tests.support.served import Reply, get, post

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
    "trust": ("get_trust", {"shop_domain": "lamp"}),
    "checkout": ("resolve_checkout_url", {"offer_id": "o-lamp", "affiliate": True}),
    "monetized": ("monetize_offer", {"offer_id": "o-lamp"}),
    "conflict": ("resolve_conflict", {"from_shop_id": "lamp", "to_shop_id": "moss"}),
    "candidates": ("resolve_conflict", {"from_shop_id": "moss"}),
}
SUGGEST: Final = "/suggest?q=lum"
SUGGESTED: Final = "suggestions"

Answer = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Observation:
    """An answer, and when it was asked for."""

    asked_at: float
    name: str
    answer: Answer


def answers(base: str, token: str) -> dict[str, Answer]:
    """What all calls are answered now."""
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
        """End after the current round."""
        self._stop_asked.set()
        self.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def since(self, start: float) -> list[Observation]:
        """What was requested from this time on, in seconds of the monotonic clock."""
        return [one for one in self.observations if one.asked_at >= start]

    def wait_for(self, expected: Mapping[str, Answer], start: float, seconds: float) -> bool:
        """Wait until the newest answer of every call since this time is as expected."""
        while time.monotonic() < start + seconds:
            newest = {one.name: one.answer for one in self.since(start)}
            if newest == dict(expected):
                return True
            time.sleep(0.02)
        return False
