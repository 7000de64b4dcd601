"""Invented packages in the form of `name-suggestion-index`, and the real one as `make open-catalogue` fetches it."""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.real.sources import REPOSITORY

_FETCHED: Final = "var/open-data/name-suggestion-index-8.0.20260918.tgz"


def brand(name: str, brand_id: str, entry: str | None = None, /, *include: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A brand of the package; `more` are tags, `exclude` among them an area."""
    area: dict[str, list[Any]] = {"include": list(include)}
    if "exclude" in more:
        area["exclude"] = more.pop("exclude")
    tags = {"brand": name, "name": name, **({"brand:wikidata": entry} if entry else {}), **more}
    return {"displayName": name, "id": brand_id, "locationSet": area, "tags": tags}


def files_of(
    brands: Mapping[str, list[dict[str, Any]]], sites: Mapping[str, list[str]], dissolved: Iterable[str] = ()
) -> dict[str, bytes]:
    """The members of a package, with brands by key (`brands/shop/books`) and sites by Wikidata id."""
    documents: dict[str, Any] = {
        "package/package.json": {"name": "name-suggestion-index", "version": "8.0.1"},
        "package/dist/json/nsi.min.json": {"nsi": {key: {"items": items} for key, items in brands.items()}},
        "package/dist/wikidata/wikidata.min.json": {
            "wikidata": {entry: {"label": entry, "officialWebsites": urls} for entry, urls in sites.items()}
        },
        "package/dist/wikidata/dissolved.min.json": {"dissolved": {one: [{"date": "2020"}] for one in dissolved}},
    }
    members = {name: json.dumps(document, ensure_ascii=False).encode() for name, document in documents.items()}
    return {**members, "package/LICENSE.md": b"## BSD 3-Clause\n\nCopyright 2026, contributors\n", "package/x.js": b"x"}


def pack(path: Path, members: Mapping[str, bytes], *more: tarfile.TarInfo) -> Path:
    """Write a package; `more` are members without content, such as links."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in more:
            archive.addfile(member)
    return path


def small_package(path: Path) -> Path:
    """A package of two shops."""
    books = [brand("Lamp Books", "lampbooks-1", "Q1", "de"), brand("Reed", "reed-2", "Q2", "001")]
    sites = {"Q1": ["https://www.lampbooks.example/"], "Q2": ["https://reed.example/"]}
    return pack(path, files_of({"brands/shop/books": books}, sites))


def real_package() -> Path:
    """The pinned package of `$SHOP_DIRECTORY_OPEN_DATA`, or that which `make open-catalogue` fetches, by npm."""
    if given := os.environ.get("SHOP_DIRECTORY_OPEN_DATA"):
        return Path(given)
    subprocess.run(["make", "--silent", _FETCHED], cwd=REPOSITORY, check=True, timeout=240)
    return REPOSITORY / _FETCHED
