"""One-character `find_shop` with its exact total, and names of shops: how long each takes, and whether it is right.

Every total of a character is held against a plain count over the catalogue by the contract's own forms (M3); a name
must find a shop.
"""

import asyncio
import http.client
import json
import string
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from index_mappings.forms import query_forms, shop_forms
from index_mappings.text import is_ideographic, words_of
from shop_directory.search.protocol import FindQuery, SearchBackend

# All letters, a digit, one with a mark that is folded away, and an ideograph, which matches inside names.
CHARACTERS: Final = (*string.ascii_lowercase, "7", "ü", "東")
_PAGE: Final = 50


class WrongTotalError(Exception):
    """An engine counted otherwise than the plain count."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds, ascending, of characters that find shops, and of those for which known words are searched (M6)."""

    found: tuple[float, ...]
    empty: tuple[float, ...]


def plain_totals(shops: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many of the catalogue's public shops each character finds, every shop looked at.

    No two of the shops are of the same domain.
    """
    asked = {character: query_forms(character).spaced for character in CHARACTERS}
    totals = dict.fromkeys(CHARACTERS, 0)
    for shop in shops:
        if shop["visibility"] != "public":
            continue
        evidence = _evidence(shop)
        for character, folded in asked.items():
            totals[character] += folded in evidence
    return totals


def time_backend(backend: SearchBackend, totals: Mapping[str, int], rounds: int) -> Timed:
    """Call a search backend, one call after the other, after a first round that is not timed."""

    async def calls() -> list[tuple[str, float]]:
        times: list[tuple[str, float]] = []
        try:
            for number in range(rounds + 1):
                for character, total in totals.items():
                    started = time.perf_counter()
                    snapshot = await backend.snapshot()
                    found = await snapshot.find(
                        FindQuery(character, countries=(), categories=(), offset=0, limit=_PAGE)
                    )
                    spent = time.perf_counter() - started
                    _check(character, found.total, total)
                    times += [(character, spent)] if number else []
        finally:
            await backend.close()
        return times

    return _timed(asyncio.run(calls()), totals)


def time_service(port: int, totals: Mapping[str, int], rounds: int) -> Timed:
    """Call the whole service over one keep-alive connection, after a first round that is not timed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    times: list[tuple[str, float]] = []
    for number in range(rounds + 1):
        for character, total in totals.items():
            body = json.dumps({"query": character, "limit": _PAGE})
            started = time.perf_counter()
            connection.request("POST", "/tool/find_shop", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            spent = time.perf_counter() - started
            if answer.status != HTTPStatus.OK:
                raise RuntimeError(f"find_shop answered {answer.status}")
            _check(character, json.loads(text)["total_count"], total)
            times += [(character, spent)] if number else []
    connection.close()
    return _timed(times, totals)


def sample_names(catalogue: Path, count: int) -> list[str]:
    """Names of public shops from all over a catalogue's NDJSON file, at most `count`."""
    found: list[str] = []
    size = catalogue.stat().st_size
    with catalogue.open("rb") as file:
        for offset in range(0, size, -(-size // count)):
            file.seek(offset)
            file.readline()
            if line := file.readline():
                record = json.loads(line)
                found += [record["name"]] * (record["visibility"] == "public")
    return found


def time_names(port: int, names: Sequence[str]) -> tuple[float, ...]:
    """Milliseconds, ascending, of `find_shop` by each name with its exact total, over one keep-alive connection."""
    bodies = [json.dumps({"query": name}) for name in names]
    return _timed_requests(port, [("POST", "/tool/find_shop", body) for body in bodies], "results")


def time_typing(port: int, names: Sequence[str]) -> tuple[float, ...]:
    """Milliseconds, ascending, of suggest requests for each first part of each name, over one keep-alive connection.

    The service caches none of them, apart from those that several names begin with.
    """
    typed = dict.fromkeys(name[:length] for name in names for length in range(1, len(name) + 1))
    return _timed_requests(port, [("GET", f"/suggest?q={quote(text)}", None) for text in typed], "shops")


def _timed_requests(port: int, requests: Sequence[tuple[str, str, str | None]], field: str) -> tuple[float, ...]:
    times: list[float] = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        for method, target, body in requests:
            started = time.perf_counter()
            connection.request(method, target, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read()
            times.append((time.perf_counter() - started) * 1000)
            if answer.status != HTTPStatus.OK or not json.loads(text)[field]:
                raise RuntimeError(
                    f"{target} {body or ''} is answered with {answer.status} and no shop: {text[:200]!r}"
                )
    return tuple(sorted(times))


def _evidence(shop: Mapping[str, Any]) -> set[str]:
    """The single characters that are evidence of a shop (M3): beginnings, one-letter categories, ideographs inside."""
    forms = shop_forms(shop["name"], shop["aliases"], shop["domain"])
    named = [word for category in shop["categories"] for text in category.values() for word in words_of(text)]
    return {
        *(text[0] for text in (*forms.full, *forms.keys, *forms.words)),
        *(word for word in named if len(word) == 1),
        *(character for text in forms.infixes for character in text if is_ideographic(character)),
    }


def _check(character: str, total: int, expected: int) -> None:
    if total != expected:
        raise WrongTotalError(f"{character!r} finds {expected:,} shops, but the engine counted {total:,}")


def _timed(times: Sequence[tuple[str, float]], totals: Mapping[str, int]) -> Timed:
    def of(*, found: bool) -> tuple[float, ...]:
        return tuple(sorted(spent * 1000 for character, spent in times if (totals[character] > 0) is found))

    return Timed(found=of(found=True), empty=of(found=False))
