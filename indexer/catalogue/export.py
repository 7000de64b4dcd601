"""Writes the public catalogue of the live generation as files that others may mirror.

It is read from the index, which has public shops only, and not from the indexer's private state. Codes that are
rejected, expired, not valid yet, reserved or blocked anywhere are left out, and so is everything about affiliates.
"""

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from urllib.parse import urlsplit

from index_mappings.generations import Stamp
from index_mappings.values import microseconds, wire_timestamp
from indexer.projection import is_reserved
from indexer.records.problems import CatalogueError
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import holding
from indexer.sinks.protocol import GenerationReader, Sink
from indexer.state.state import StateError

MANIFEST: Final = "manifest.json"
FORMAT: Final = "shop-directory-export/1"
_LICENCE: Final = "LICENCE.txt"
_SUFFIX: Final = ".ndjson"
_PAGE: Final = 2_000
_MOST_HOSTS: Final = 50

_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is written besides the public catalogue: measured facts, and the text of the licence."""

    with_trust: bool = False
    licence: str | None = None
    wait: float = 60.0


def export(sink: Sink, directory: Path, options: ExportOptions, now: datetime | None = None) -> dict[str, Any]:
    """Write the export into a new directory, or in place of an earlier export; returns its manifest.

    The lease is held for a page at a time, so that a follower goes on. A shop that is hidden during the run is in no
    file. Raises CatalogueError if the directory has something else or can't be written, StateError if nothing is live,
    SinkError if the engine failed or another generation was published.
    """
    live = sink.live()
    if live is None or not live.readable:
        raise StateError("no generation that can be read is live: build one first, by shop-directory index build")
    with _replaced(directory) as folder:
        return _Export(sink, live, options, now or datetime.now(UTC)).write(folder)


class _Export:
    def __init__(self, sink: Sink, live: Stamp, options: ExportOptions, now: datetime) -> None:
        self._sink, self._live, self._options, self._now = sink, live, options, now
        self._hosts: dict[str, dict[str, None]] = {}
        self._left_out: Counter[str] = Counter()
        self._owners: set[str] = set()

    def write(self, folder: Path) -> dict[str, Any]:
        names = {slug: stored["name"] for slug, stored in self._documents("categories")}
        # Offers come before shops, whose further hosts are those of their checkout URLs.
        _write(folder, "offers", self._owned(self._offer(stored) for _, stored in self._documents("offers")))
        shops = (self._shop(stored, names) for _, stored in self._documents("shops"))
        _write(folder, "shops", self._owned(shops, "id"))
        _write(folder, "coupons", self._owned(self._coupons()))
        for kind in ("shipping", "policies", *(["trust"] if self._options.with_trust else [])):
            facts = (record for shop_id, stored in self._documents("facts") for record in _facts(shop_id, stored, kind))
            _write(folder, kind, self._owned(facts))
        gone = self._owners - self._still_public()
        files = [_listed(path, gone) for path in sorted(folder.iterdir())]
        if self._options.licence is not None:
            (folder / _LICENCE).write_text(self._options.licence, encoding="utf-8")
        manifest = {
            "format": FORMAT,
            "generation": self._live.generation,
            "data_as_of": self._live.built_at,
            "exported_at": wire_timestamp(self._now),
            "licence": None if self._options.licence is None else _LICENCE,
            "with_trust": self._options.with_trust,
            "left_out_coupons": dict(sorted(self._left_out.items())),
            "files": files,
        }
        (folder / MANIFEST).write_text(f"{json.dumps(manifest, indent=2)}\n", encoding="utf-8")
        return manifest

    def _owned(self, records: Iterable[_Record], owner: str = "shop_id") -> Iterator[_Record]:
        """The same records; the shops that they belong to are noted."""
        for record in records:
            self._owners.add(record[owner])
            yield record

    def _documents(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        page: Sequence[tuple[str, dict[str, Any]]] = [("", {})]
        while page:
            with self._reading() as reader:
                page = reader.page(kind, page[-1][0], _PAGE)
            yield from page

    def _still_public(self) -> frozenset[str]:
        found: set[str] = set()
        listed = sorted(self._owners)
        for start in range(0, len(listed), _PAGE):
            with self._reading() as reader:
                found |= reader.read("shops", listed[start : start + _PAGE]).keys()
        return frozenset(found)

    @contextmanager
    def _reading(self) -> Iterator[GenerationReader]:
        with holding(self._sink.lease(), "export", self._options.wait):
            live = self._sink.live()
            if live is None or live.generation != self._live.generation:
                raise SinkError("another generation was published during the export: start it again")
            yield self._sink.reader(live.generation)

    def _withheld(self, stored: Mapping[str, Any]) -> str | None:
        """Why a coupon is not for everybody now; None for one that is."""
        view = stored["view"]
        now = microseconds(self._now)
        if view["verificationStatus"] == "verified_rejected":
            return "rejected"
        if stored["blocked_channels"] or stored["blocked_countries"]:
            return "blocked"
        if view["validUntil"] is not None and _time(view["validUntil"]) < now:
            return "expired"
        if view["validFrom"] is not None and _time(view["validFrom"]) > now:
            return "not valid yet"
        return "reserved" if is_reserved(view["shop"]["domain"]) else None

    def _coupons(self) -> Iterator[_Record]:
        for coupon_id, stored in self._documents("coupons"):
            if (reason := self._withheld(stored)) is None:
                yield _coupon(coupon_id, stored["view"])
            else:
                self._left_out[reason] += 1

    def _shop(self, stored: Mapping[str, Any], names: Mapping[str, str]) -> _Record:
        stated = ("id", "name", "domain", "countries", "popularity", "aliases", "logo")
        return {
            **{field: stored[field] for field in stated},
            "categories": [{"slug": slug, "name": names.get(slug, slug)} for slug in stored["categories"]],
            "checkout_hosts": list(self._hosts.pop(stored["id"], ()))[:_MOST_HOSTS],
            "visibility": "public",
        }

    def _offer(self, stored: Mapping[str, Any]) -> _Record:
        shop_id, domain = stored["shop"]["id"], stored["shop"]["domain"]
        url, view = stored["checkout_url"], stored["view"]
        host = None if url is None else urlsplit(url).hostname
        if host is not None and host != domain and not host.endswith(f".{domain}"):
            self._hosts.setdefault(shop_id, {})[host] = None
        stated = {field: value for field, value in view.items() if field != "offer_id"}
        return {"id": view["offer_id"], "shop_id": shop_id, **stated, "url": url}


def _coupon(coupon_id: str, view: Mapping[str, Any]) -> _Record:
    return {
        "id": coupon_id,
        "shop_id": view["shop"]["id"],
        **{field: view[field] for field in ("code", "title", "discount", "countries", "source")},
        "min_order": view["minOrder"],
        "valid_from": view["validFrom"],
        "valid_until": view["validUntil"],
        "verification_status": view["verificationStatus"],
        "last_verified_at": view["lastVerifiedAt"],
    }


def _facts(shop_id: str, stored: Mapping[str, Any], kind: str) -> Iterator[_Record]:
    """The records of a kind that state the facts of a shop."""
    owner = {"shop_id": shop_id}
    if kind == "shipping":
        yield from [] if stored["shipping"] is None else [owner | stored["shipping"]]
    elif kind == "trust":
        yield from (owner | signal for signal in stored["signals"])
    else:
        for name, listed in stored["policies"].items():
            for policy in listed:
                # Documents say "unknown" where nothing is stated.
                yield owner | {"kind": name} | {k: v for k, v in policy.items() if (k, v) != ("fees", "unknown")}


def _write(folder: Path, kind: str, records: Iterable[_Record]) -> None:
    with (folder / f"{kind}{_SUFFIX}").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(_without_blanks(record), ensure_ascii=False)}\n" for record in records)


def _listed(path: Path, gone: Collection[str]) -> dict[str, Any]:
    """A file's line of the manifest, after the records of shops that are gone were removed from it."""
    content = path.read_bytes()
    if gone:
        owner = "id" if path.name == f"shops{_SUFFIX}" else "shop_id"
        lines = content.splitlines(keepends=True)
        content = b"".join(line for line in lines if json.loads(line)[owner] not in gone)
        path.write_bytes(content)
    digest = sha256(content).hexdigest()
    return {"name": path.name, "records": content.count(b"\n"), "bytes": len(content), "sha256": digest}


def _without_blanks(record: Mapping[str, Any]) -> _Record:
    """The record without what is not stated."""
    parts = ((name, _without_blanks(value) if isinstance(value, dict) else value) for name, value in record.items())
    return {name: value for name, value in parts if value not in (None, [], {})}


def _time(text: str) -> int:
    return microseconds(datetime.fromisoformat(text))


@contextmanager
def _replaced(directory: Path) -> Iterator[Path]:
    """A folder that takes the place of a directory when the block succeeds, and is removed otherwise."""
    held = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    if directory.exists() and held and MANIFEST not in held:
        raise CatalogueError(f"{directory} holds something else than an export: name another directory")
    part, former = (directory.with_name(f".{directory.name}.{token_hex(4)}.{end}") for end in ("part", "former"))
    try:
        part.mkdir(parents=True)
        yield part
        if directory.exists():
            directory.rename(former)
        part.rename(directory)
    except OSError as error:
        raise CatalogueError(f"{directory} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(former, ignore_errors=True)
