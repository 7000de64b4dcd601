"""Small catalogues for tests: shops and related records, written to disk and built by the real indexer.

A test states only what it is about; everything else of a record is filled in with what says nothing.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.records.related import SHIPPING_FIELDS
from indexer.sinks.protocol import Sink
from indexer.sources.ndjson import NdjsonCatalogue

Lines = Iterable[Mapping[str, Any]]


def shop(name: str, domain: str | None = None, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A line of `shops`; without a domain, one that has nothing to do with the name.

    `categories` among the other fields may be slugs, or slug and name pairs.
    """
    number = crc32(name.encode("utf-8", "surrogatepass"))
    shop_id = fields.pop("id", None) or f"shop_{domain.replace('.', '_') if domain else number}"
    categories = [
        {"slug": category, "name": category.replace("-", " ").title()}
        if isinstance(category, str)
        else {"slug": category[0], "name": category[1]}
        for category in fields.pop("categories", ("things",))
    ]
    return {
        "id": shop_id,
        "name": name,
        "domain": domain or f"q{number}.internal",
        "categories": categories,
        "countries": [],
        "popularity": None,
        "aliases": [],
        "visibility": "public",
        "source": "test",
        **fields,
    }


def coupon(code: str, shop_id: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A line of `coupons`, unverified and open-ended; its id is made of its shop and its code."""
    return {
        "id": f"{shop_id}-{crc32(code.encode())}",
        "shop_id": shop_id,
        "code": code,
        "verification_status": "unverified",
        **fields,
    }


def offer(offer_id: str, shop_id: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {"id": offer_id, "shop_id": shop_id, "title": f"Offer {offer_id}", **fields}


def shipping(shop_id: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A line of `shipping`, with something to state."""
    states = any(fields.get(name) for name in SHIPPING_FIELDS)
    return {"shop_id": shop_id, **({} if states else {"delivery_time": {"as_stated": "soon"}}), **fields}


def policy(shop_id: str, kind: str, country: str | None = None, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A line of `policies`, with the field that its kind needs."""
    needed = {"returns": ("category", "finite"), "payment_methods": ("methods", ["card"])}
    name, value = needed.get(kind, ("as_stated", "as agreed"))
    read = {"source": "test", "checked_at": "2031-05-06T07:08:09Z"}
    return {"shop_id": shop_id, "kind": kind, "country": country, name: value, **read, **fields}


def trust(shop_id: str, kind: str, value: object = None, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A line of `trust`: a check that ran; without a value it found nothing."""
    measured = {"source": "test", "checked_at": "2031-05-06T07:08:09Z"}
    return {"shop_id": shop_id, "kind": kind, "value": value, **measured, **fields}


def program(shop_id: str, network: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {
        "shop_id": shop_id,
        "network": network,
        "program_id": f"p-{shop_id}",
        "url_template": "https://go.network.internal/click?to={url}",
        "network_hosts": ["go.network.internal"],
        **fields,
    }


def redirect(from_domain: str, to_domain: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {"from_domain": from_domain, "to_domain": to_domain, **fields}


def write_catalogue(path: Path, shops: Lines) -> Path:
    """Write lines as one NDJSON file, by itself a catalogue of shops; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in shops), encoding="utf-8")
    return path


def write_catalogue_directory(path: Path, *, shops: Lines, **others: Lines) -> Path:
    """Write a whole catalogue as a directory of NDJSON files, from the lines of each; returns its path."""
    for kind, lines in {"shops": shops, **others}.items():
        write_catalogue(path / f"{kind}.ndjson", lines)
    return path


def build_into(sink: Sink, path: Path) -> BuildSummary:
    """Build a catalogue as the command does; a test may be about a directory without public shops."""
    return build(NdjsonCatalogue(path), sink, options=BuildOptions(allow_empty=True))


def upsert(kind: str, record: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A line that replaces or adds a record with another version, of which a greater one is newer."""
    return {"op": "upsert", "type": kind, "record": {**record, "version": version}}


def delete(kind: str, key: str, version: int) -> dict[str, Any]:
    """A line that deletes the record of a type and a key; a greater version is newer."""
    return {"op": "delete", "type": kind, "key": key, "version": version}
