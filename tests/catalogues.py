"""Small catalogues for tests: shops in three lines, written to disk and built by the real indexer.

A test states only what it is about; everything else of a record is filled in with what says nothing.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from indexer.build import BuildSummary, build
from indexer.sinks.protocol import Sink
from indexer.sources.ndjson import NdjsonCatalogue


def shop(name: str, domain: str | None = None, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A line of `shops`.

    Args:
        name: the display name.
        domain: without one, a domain that has nothing to do with the name.
        fields: any field of the record; `categories` may be slugs, or slug and name pairs.
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


def write_catalogue(path: Path, shops: Iterable[Mapping[str, Any]]) -> Path:
    """Write shops as one NDJSON file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in shops), encoding="utf-8")
    return path


def build_into(sink: Sink, path: Path) -> BuildSummary:
    """Build a catalogue as the command does."""
    return build(NdjsonCatalogue(path), sink)
