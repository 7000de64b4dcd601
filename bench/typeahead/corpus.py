"""The corpus of the comparison: the development shops mixed into invented ones that are like them.

Each invented shop takes its facts from one development shop drawn by seeded chance, its donor: popularity (none
included), categories, countries, how many words its name has, how many aliases it has, in which scripts and how they
are related to the name, how its domain is related to the name, and the domain's suffix. Where the donor shares its name
with other shops, so does the invented one, more often than not. So the proportions, and what goes together, are those
of the development shops. Name, aliases and the label of the domain are its own, made by `names.Names`, which learns
from the development names at run time; none of those is given out, and no domain of theirs. Many invented domains end
as real ones do (`.com`, `.co.uk`), as a made-up ending would spare every engine what such endings cost; nothing ever
asks for them. Development shops are at random positions, not first: an engine whose ties go by position gets
no hint from it.

The invented shops are the same ones, in the same order, however many are asked for: a smaller corpus is the beginning
of a larger one. Nothing of the development data is written anywhere but to the corpus that is asked for.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from anyascii import anyascii

from bench.typeahead.names import Names, fold, script_of
from index_mappings.hosts import domain_parts
from index_mappings.text import joined

SEED: Final = 20_261_122

_SHOPS_FILE: Final = "dev-shops.ndjson"
_ID_BITS: Final = 48
_ID_STEP: Final = 0x9E37_79B9_7F4B  # odd, so that all numbers of 48 bits have another image
_NEXT_OF_A_FAMILY: Final = 0.6
_LABEL_MAX: Final = 63
_NO_LABEL: Final = "www"  # it goes when a host is reduced (R1)


def mixed_corpus(dev_data: Path, invented: int, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Lines of `shops`: all development shops, and so many invented ones; ids and domains are unique.

    The same seed gives the same lines.
    """
    known = development_shops(dev_data)
    shops = invented_shops(known, seed)
    chance = random.Random(f"places {seed}")
    positions = sorted(chance.randint(0, invented) for _ in known)
    order = chance.sample(known, len(known))
    before = 0
    for position, shop in zip(positions, order, strict=True):
        yield from islice(shops, position - before)
        before = position
        yield shop
    yield from islice(shops, invented - before)


def write_corpus(path: Path, dev_data: Path, invented: int, seed: int = SEED) -> Path:
    """Write the mixed corpus as one NDJSON file; arguments as for `mixed_corpus`."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line, ensure_ascii=False)}\n" for line in mixed_corpus(dev_data, invented, seed))
    return path


def development_shops(dev_data: Path) -> list[dict[str, Any]]:
    """The lines of the development shops."""
    with (dev_data / _SHOPS_FILE).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def invented_shops(known: list[dict[str, Any]], seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Invented shops without end, drawn from the known development shops."""
    chance = random.Random(f"shops {seed}")
    bearers = Counter(fold(shop["name"]) for shop in known)
    donors = [_donor(shop, shares_name=bearers[fold(shop["name"])] > 1) for shop in known]
    names = Names(
        (name for shop in known for name in dict.fromkeys((shop["name"], *shop["aliases"]))),
        (text for shop in known for text in (shop["name"], *shop["aliases"], domain_parts(shop["domain"]).main_label)),
    )
    taken_ids = {shop["id"] for shop in known}
    taken_domains = {shop["domain"] for shop in known}
    suffixes = [donor.suffix for donor in donors]
    shared: dict[str, str] = {}
    offset = chance.getrandbits(_ID_BITS)
    number = 0
    while True:
        number += 1
        shop_id = f"shop_{(number * _ID_STEP + offset) % 2**_ID_BITS:012x}"
        if shop_id in taken_ids:
            continue
        donor = chance.choice(donors)
        name = shared.get(donor.script) if donor.shares_name and chance.random() < _NEXT_OF_A_FAMILY else None
        if name is None:
            name = names.invent(chance, donor.script, donor.words)
        if donor.shares_name:
            shared[donor.script] = name
        label = _label(chance, names, donor, name)
        domain = f"{label}.{donor.suffix}"
        while domain in taken_domains:
            domain = f"{_longer(chance, names, label)}.{chance.choice(suffixes)}"
        taken_domains.add(domain)
        yield {
            "id": shop_id,
            "name": name,
            "domain": domain,
            "categories": donor.shop["categories"],
            "countries": donor.shop["countries"],
            "popularity": donor.shop["popularity"],
            "aliases": [_alias(chance, names, alias, name) for alias in donor.aliases],
            "source": "invented",
            "visibility": "public",
        }


@dataclass(frozen=True, slots=True)
class _Donor:
    """A development shop, the script and number of words of its name, and how its parts are related.

    `aliases` have the relation to the name, the script and the words of each; `label` is the relation of its domain's
    main label to the name, and `suffix` what follows that label. Another shop may share its name.
    """

    shop: dict[str, Any]
    script: str
    words: int
    shares_name: bool
    aliases: tuple[tuple[str, str, int], ...]
    label: str
    suffix: str


def _donor(shop: dict[str, Any], *, shares_name: bool) -> _Donor:
    name = shop["name"]
    script = script_of(name)
    parts = domain_parts(shop["domain"])
    return _Donor(
        shop=shop,
        script=script,
        words=len(name.split()),
        shares_name=shares_name,
        aliases=tuple((_relation(name, alias), script_of(alias), len(alias.split())) for alias in shop["aliases"]),
        label=_relation(_plain_label(name), parts.main_label.replace("-", ""))
        + ("-" if "-" in parts.main_label else ""),
        suffix=parts.registrable.partition(".")[2] or "com",
    )


def _relation(name: str, other: str) -> str:
    """How another text is related to a name: it is the "same", "longer", "shorter", or "other"."""
    known, text = joined(fold(name)), joined(fold(other))
    if known == text:
        return "same"
    if text.startswith(known):
        return "longer"
    return "shorter" if known.startswith(text) or fold(name).split()[:1] == fold(other).split()[:1] else "other"


def _alias(chance: random.Random, names: Names, like: tuple[str, str, int], name: str) -> str:
    kind, script, words = like
    own = name.split()
    if script == script_of(name):
        if kind == "same":
            return name.upper() if name.upper() != name else name.lower()
        if kind == "longer":
            return names.invent(chance, script, max(words, len(own) + 1), f"{name} ")
        if kind == "shorter" and len(own[0]) > 1:
            if len(own) > 1 and names.is_new(own[0]):
                return own[0]
            return names.invent(chance, script, max(words, 2), f"{own[0]} ")
    elif script == "latin" and (spelt := anyascii(name).strip()) and names.is_new(spelt):
        return spelt.title()
    return names.invent(chance, script, words)


def _label(chance: random.Random, names: Names, donor: _Donor, name: str) -> str:
    kind = donor.label.rstrip("-")
    between = "-" if donor.label.endswith("-") else ""
    text = name
    if kind == "other":
        text = names.invent(chance, "latin", chance.choice((1, 2)))
    elif kind == "shorter":
        text = name.split(maxsplit=1)[0]
    label = _plain_label(text, between)
    if kind == "longer" or len(label) < 2 or label == _NO_LABEL or not names.is_new(label):
        label = _longer(chance, names, label, between)
    return label


def _longer(chance: random.Random, names: Names, label: str, between: str = "") -> str:
    """The label with one more word."""
    while True:
        more = _plain_label(names.invent(chance, "latin").split()[-1])
        if more not in {"", _NO_LABEL} and len(label) + len(between) + len(more) <= _LABEL_MAX:
            return f"{label}{between}{more}" if label else more
        label = label[: _LABEL_MAX // 2].rstrip("-")


def _plain_label(name: str, between: str = "") -> str:
    """A name as the label of a domain."""
    words = fold(anyascii(name)).split()
    return between.join("".join(filter(str.isalnum, word)) for word in words)[:_LABEL_MAX].strip("-")
