"""Writes the files of a catalogue: the starter into an empty directory, or one file in place of an older one."""

import gzip
import json
import shutil
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TextIO

from index_mappings.category_forms import ENGLISH
from index_mappings.text import fold
from indexer.records.problems import CatalogueError
from indexer.records.related import RECORDS
from shop_directory.durable_files import synchronise

STARTER: Final = Path(__file__).parent / "starter_files"
# A folder for each set of categories that a catalogue may begin with: their names, the licence of these, and in
# EVERYDAY_WORDS the words by which people ask for their goods, by slug and language.
CATEGORY_SETS: Final = Path(__file__).parent / "category_sets"
CATEGORIES: Final = "categories.ndjson"
EVERYDAY_WORDS: Final = "words.toml"
_SUFFIXES: Final = (".ndjson", ".ndjson.gz")
# The suffixes of a file that is being written, and of the one that it replaced.
_PART: Final = ".part"
_PREVIOUS: Final = ".previous"


def write_starter(folder: Path, categories: str | None = None) -> tuple[str, ...]:
    """Write a small catalogue with one file of each kind, and a README.md that explains them; returns their names.

    `categories` names a set whose files take the place of the starter's; a directory that has shops only gets these.
    Raises CatalogueError if the directory has something else, or names of categories already, or can't be written.
    """
    chosen = files_of_set(CATEGORY_SETS / categories) if categories else {}
    held = {path.name for path in folder.glob("*") if path.name in _file_names(("shops", "categories"))}
    if chosen and (taken := held & _file_names(("categories",))):
        raise CatalogueError(f"{folder / min(taken)} is there: remove it, or name another directory")
    starter = {} if held else {path.name: path.read_text(encoding="utf-8") for path in STARTER.iterdir()}
    with _folder(folder, may_hold=_file_names(("shops",)) if chosen else ()):
        files = starter | chosen
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return tuple(sorted(files))


def category_records(name: str) -> list[dict[str, Any]]:
    """The records of a set of categories, with its everyday words among their synonyms."""
    folder = CATEGORY_SETS / name
    words = tomllib.loads((folder / EVERYDAY_WORDS).read_text(encoding="utf-8"))
    lines = (folder / CATEGORIES).read_text(encoding="utf-8").splitlines()
    return [_with_words(record, words.get(record["slug"], {})) for record in map(json.loads, lines)]


def _with_words(record: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A record with more synonyms, by language; those that it has in the language already are left out."""
    synonyms = dict(record["synonyms"])
    named = [(ENGLISH, record["name"]), *record["names"].items()]
    named += [(tag, text) for tag, texts in synonyms.items() for text in texts]
    for language, added in words.items():
        known = {fold(text) for tag, text in named if tag.partition("-")[0] == language}
        if fresh := [word for word in added if fold(word) not in known]:
            synonyms[language] = [*synonyms.get(language, ()), *fresh]
    return {**record, "synonyms": dict(sorted(synonyms.items()))}


def files_of_set(folder: Path) -> dict[str, str]:
    """The texts of the files that a catalogue gets, by their names."""
    kept = (path for path in folder.iterdir() if path.name not in (CATEGORIES, EVERYDAY_WORDS))
    lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in category_records(folder.name))
    return {
        CATEGORIES: "".join(f"{line}\n" for line in lines),
        **{path.name: path.read_text(encoding="utf-8") for path in kept},
    }


def _file_names(kinds: Iterable[str]) -> frozenset[str]:
    return frozenset(f"{kind}{suffix}" for kind in kinds for suffix in _SUFFIXES)


def file_of(folder: Path, kind: str) -> Path:
    """The file of a kind in a directory: the one that is there, gzipped or not, else `KIND.ndjson`."""
    named = [folder / f"{kind}{suffix}" for suffix in _SUFFIXES]
    return next(filter(Path.exists, named), named[0])


@contextmanager
def catalogue_file(folder: Path, kind: str) -> Iterator[TextIO]:
    """A file that becomes `KIND.ndjson` of a directory when the block succeeds, and is removed otherwise.

    A file that is replaced is kept as `KIND.ndjson.previous`; one that is gzipped is replaced by one that is. At every
    moment the directory has the whole old file or the whole new one, also when the process is killed or power is lost.
    Raises CatalogueError if the directory holds something else than a catalogue, or can't be written.
    """
    with _folder(folder, may_hold=_file_names(RECORDS)):
        path = file_of(folder, kind).resolve()  # the file itself, where its name is a link
        part, spare = (path.with_name(f"{path.name}.{token_hex(4)}{_PART}") for _ in range(2))
        try:
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(part, "xt", encoding="utf-8") as file:
                yield file
            if path.exists():
                shutil.copy(path, spare)
                shutil.copymode(path, part)
                _replace(spare, path.with_name(f"{path.name}{_PREVIOUS}"))
            _replace(part, path)
        finally:
            part.unlink(missing_ok=True)
            spare.unlink(missing_ok=True)


def _replace(fresh: Path, path: Path) -> None:
    """Give a whole file its name, so that it survives a loss of power."""
    synchronise(fresh)
    fresh.replace(path)
    synchronise(path.parent)


@contextmanager
def _folder(folder: Path, may_hold: Collection[str] = ()) -> Iterator[None]:
    """Make a directory, removed again if it stays empty; CatalogueError if it has files and none of `may_hold`."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = {path.name for path in folder.iterdir() if path.suffix != _PART}
        if held and held.isdisjoint(may_hold):
            reason = "holds files that are no catalogue" if may_hold else "is not empty"
            raise CatalogueError(f"{folder} {reason}: name another directory")
        yield
    except OSError as error:
        raise CatalogueError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # does nothing unless the directory is empty
