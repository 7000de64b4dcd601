"""Clients that read all the time and know every right answer: what they get, and for how long they are refused."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import cycle, islice
from typing import Any, Final

from tests.support.served import Reply, get, post

_PAUSE_S: Final = 0.02

QUESTIONS: Final[tuple[tuple[str, dict[str, Any] | None], ...]] = (
    ("/suggest?q=lumen+4", None),
    ("/suggest?q=lmuen", None),
    ("/tool/find_shop", {"query": "lumen 77"}),
    ("/tool/find_shop", {"query": "larhc 12"}),
    ("/tool/find_shop", {"query": "", "category": "light-1", "offset": 300, "limit": 50}),
    ("/tool/find_shop", {"query": "lumen qqxx"}),
    ("/tool/list_categories", {}),
    ("/tool/get_shop", {"shop_domain": "l7.internal"}),
    ("/tool/get_shop", {"shop_domain": "unknown.internal"}),
    ("/tool/list_coupons", {"shop_domain": "l5.internal"}),
    ("/tool/list_coupons", {}),
    ("/tool/get_shipping_policy", {"shop_domain": "l14.internal"}),
    ("/tool/get_trust", {"shop_domain": "l10.internal"}),
    ("/tool/monetize_offer", {"offer_id": "o-s50"}),
    ("/tool/resolve_checkout_url", {"offer_id": "o-s51"}),
    ("/tool/resolve_conflict", {"from_shop_id": "s1", "to_shop_id": "s2"}),
)

Answers = tuple[tuple[int, bytes], ...]


def answers(base: str, token: str) -> Answers:
    """Status and body of the answer to each question."""
    content = (_ask(base, path, body, token) for path, body in QUESTIONS)
    return tuple((reply.status, reply.body) for reply in content)


@dataclass
class Record:
    """The answers that one client got.

    Attributes:
        right: how many answers were right.
        refused: how many were the failure that is documented.
        wrong: all others.
        longest: the longest time without an answer, from the beginning of the first refused request to the end of the
            one that was answered again, in seconds.
    """

    right: int = 0
    refused: int = 0
    wrong: list[tuple[str, int, bytes]] = field(default_factory=list)
    longest: float = 0.0


@dataclass(frozen=True)
class Readers:
    """Clients at work."""

    records: Sequence[Record]

    @property
    def right(self) -> list[int]:
        """How many right answers each has had until now."""
        return [record.right for record in self.records]

    def summary(self) -> dict[str, Any]:
        """All of it in one."""
        return {
            "right": sum(record.right for record in self.records),
            "refused": sum(record.refused for record in self.records),
            "longest": round(max(record.longest for record in self.records), 1),
        }


@contextmanager
def reading(base: str, token: str, known: Answers, clients: int) -> Iterator[Readers]:
    """Read with that many clients until the end of the block."""
    stop = threading.Event()
    records = [Record() for _ in range(clients)]
    threads = [
        threading.Thread(target=_read, args=(base, token, known, record, 4 * number, stop))
        for number, record in enumerate(records)
    ]
    for thread in threads:
        thread.start()
    try:
        yield Readers(records)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _read(base: str, token: str, known: Answers, record: Record, first: int, stop: threading.Event) -> None:
    refused_since: float | None = None
    for (path, body), right in islice(cycle(zip(QUESTIONS, known, strict=True)), first, None):
        if stop.wait(_PAUSE_S):
            return
        started = time.monotonic()
        reply = _ask(base, path, body, token)
        if (reply.status, reply.body) == right:
            record.right += 1
            if refused_since is not None:
                record.longest = max(record.longest, time.monotonic() - refused_since)
                refused_since = None
        elif _is_our_failure(reply):
            record.refused += 1
            refused_since = started if refused_since is None else refused_since
            # What never ends has to count as well.
            record.longest = max(record.longest, time.monotonic() - refused_since)
        else:
            record.wrong.append((path, reply.status, reply.body[:500]))


def _ask(base: str, path: str, body: dict[str, Any] | None, token: str) -> Reply:
    try:
        if body is None:
            return get(base, path, x_api_token=token)
        return post(base, path, body, x_api_token=token)
    except (OSError, HTTPException) as error:
        return Reply(0, {}, type(error).__name__.encode())


def _is_our_failure(reply: Reply) -> bool:
    if reply.status != 503 or reply.headers.get("content-type") != "application/problem+json":
        return False
    return reply.json["code"] == "backend_unavailable" and reply.headers["retry-after"].isdecimal()
