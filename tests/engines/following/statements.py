"""Random statements of a source about its records: catalogues, changes of every type, and the expected result.

The expected result follows from the rule alone (G3): the newest statement about a key wins. It knows nothing of
the indexer's state, its tables or its order of work.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from indexer.records.related import RECORDS
from tests.support.catalogues import coupon, offer, program, redirect, shipping, shop, trust

_LENGTH: Final = "SHOP_DIRECTORY_CHANGES"
_WORDS: Final = ("Lamp", "Larch", "Lumen", "Moss", "Küche", "厨房", "Harbour")
_TYPES: Final = (
    *(("shops",) * 5),
    *(("coupons",) * 3),
    *(("offers",) * 3),
    "shipping",
    "trust",
    "affiliate_programs",
    *(("redirects",) * 3),
    "resource_accounts",
    *(("categories",) * 2),
)


def how_many(in_ci: int) -> int:
    """How many changes a test makes: a few in CI, more where the environment asks for it."""
    return int(os.environ.get(_LENGTH, in_ci))


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement about a record; of two the one of the greater version is newer.

    `record` holds the version; it is None when the record was deleted.
    """

    type: str
    key: str
    version: int
    record: Mapping[str, Any] | None

    @property
    def line(self) -> dict[str, Any]:
        if self.record is None:
            return {"op": "delete", "type": self.type, "key": self.key, "version": self.version}
        return {"op": "upsert", "type": self.type, "record": self.record}

    @property
    def weight(self) -> tuple[int, int, str]:
        """What decides: the version; with equal ones what hides more, then the text."""
        if self.record is None:
            return self.version, 2, ""
        text = RECORDS[self.type].model_validate_json(json.dumps(self.record)).model_dump_json()
        return self.version, int(self.record.get("visibility", "public") != "public"), text


def newest(statements: Iterable[Statement]) -> dict[tuple[str, str], Statement]:
    """What stands of each key."""
    newest: dict[tuple[str, str], Statement] = {}
    for one in sorted(statements, key=lambda one: one.weight):
        newest[one.type, one.key] = one
    return newest


def by_type(statements: Iterable[Statement]) -> dict[str, list[Mapping[str, Any]]]:
    """The records by type, as a catalogue has them; deleted ones are in none."""
    lines: dict[str, list[Mapping[str, Any]]] = {"shops": []}
    for one in statements:
        if one.record is not None:
            lines.setdefault(one.type, []).append(one.record)
    return lines


class Story:
    """A source's statements by chance; the same for the same chance.

    Shops share few domains and categories, so that they take them from each other all the time.
    """

    def __init__(self, chance: Random, shops: int) -> None:
        self._chance = chance
        self._shops = shops
        self._versions: dict[tuple[str, str], int] = {}

    def statements(self, count: int) -> list[Statement]:
        """Statements in the order in which they were made; one in eight repeats the version before."""
        return [self._versioned(*self._stated(kind)) for kind in self._chance.choices(_TYPES, k=count)]

    def catalogue(self, statements: Iterable[Statement]) -> list[Statement]:
        """A catalogue of some time: of about half of the keys one statement, a few of them without a version."""
        found: dict[tuple[str, str], Statement] = {}
        for one in statements:
            if one.record is not None and self._chance.random() < 0.4:
                found.setdefault((one.type, one.key), one)
        return [self._maybe_unversioned(one) for one in found.values()]

    def arrivals(self, statements: Iterable[Statement]) -> list[Statement]:
        """The same statements as they arrive: in any order, some of them twice."""
        arriving = list(statements)
        arriving += self._chance.sample(arriving, len(arriving) // 5)
        self._chance.shuffle(arriving)
        return arriving

    def cuts(self, statements: list[Statement], most: int) -> Iterator[list[Statement]]:
        """The statements some at a time, up to `most`."""
        at = 0
        while at < len(statements):
            size = self._chance.randint(1, most)
            yield statements[at : at + size]
            at += size

    def _versioned(self, kind: str, key: str, record: dict[str, Any]) -> Statement:
        before = self._versions.get((kind, key), 0)
        version = before if before and self._chance.random() < 0.12 else before + self._chance.randint(1, 3)
        self._versions[kind, key] = version
        gone = self._chance.random() < 0.15
        return Statement(kind, key, version, None if gone else {**record, "version": version})

    def _maybe_unversioned(self, one: Statement) -> Statement:
        # An offer without a version would be one with a time, which must not be mixed.
        if one.record is None or one.type == "offers" or self._chance.random() < 0.9:
            return one
        # Any version is newer than none.
        return replace(one, version=-1, record={name: value for name, value in one.record.items() if name != "version"})

    def _stated(self, kind: str) -> tuple[str, str, dict[str, Any]]:
        chance, owner = self._chance, f"s{self._chance.randrange(self._shops)}"
        match kind:
            case "shops":
                return kind, owner, self._shop(owner)
            case "coupons":
                code, key = f"CODE{chance.randrange(9)}", f"c{chance.randrange(self._shops * 2)}"
                return kind, key, coupon(code, owner, id=key, title=chance.choice(_WORDS))
            case "offers":
                return kind, (key := f"o{chance.randrange(self._shops * 2)}"), self._offer(key, owner)
            case "shipping":
                return kind, owner, shipping(owner, destinations=[chance.choice(("DE", "FR", "EU"))])
            case "trust":
                signal = chance.choice(("registrar", "hosting_isp"))
                value = chance.choice((None, *_WORDS))
                return kind, f"{owner}/{signal}", trust(owner, signal, value)
            case "affiliate_programs":
                network = chance.choice(("alpha", "beta"))
                disclosure = chance.choice(_WORDS)
                return kind, f"{owner}/{network}", program(owner, network, disclosure=disclosure)
            case "redirects":
                one, other = self._domain(), self._domain()  # which may be the same
                return kind, f"{one}/{other}", redirect(one, other, source=chance.choice(_WORDS))
            case "categories":
                slug = chance.choice(("home", "garden", "books", "toys", "nobody-has-it"))
                return kind, slug, self._category(slug)
            case _:
                return kind, "p/a", {"provider": "p", "account": "a", "used": float(chance.randrange(9))}

    def _shop(self, shop_id: str) -> dict[str, Any]:
        chance = self._chance
        slugs = chance.sample(("home", "garden", "books", "toys"), chance.randint(1, 3))
        return shop(
            f"{chance.choice(_WORDS)} {chance.choice(_WORDS)}",
            self._domain(),
            id=shop_id,
            categories=[(slug, slug.title() if chance.random() < 0.7 else slug.upper()) for slug in slugs],
            countries=chance.choice(([], ["DE"], ["DE", "FR"], ["WORLDWIDE"])),
            popularity=chance.choice((None, 0.0, 1.0, 2.0, 3.0)),
            aliases=[chance.choice(_WORDS)] if chance.random() < 0.3 else [],
            checkout_hosts=[self._domain()] if chance.random() < 0.3 else [],
            visibility=chance.choice(("public", "public", "public", "public", "under_review", "removed")),
        )

    def _offer(self, key: str, owner: str) -> dict[str, Any]:
        chance = self._chance
        stated: dict[str, Any] = {"updated_at": f"2031-05-0{chance.randint(1, 9)}T07:08:09Z"}
        return offer(
            key,
            owner,
            title=chance.choice(_WORDS),
            url=f"https://{self._domain()}/p",
            **(stated if chance.random() < 0.7 else {}),
        )

    def _category(self, slug: str) -> dict[str, Any]:
        chance = self._chance
        return {
            "slug": slug,
            "name": chance.choice((None, *_WORDS)),
            "names": {"de": chance.choice(_WORDS), "ja": chance.choice(_WORDS)} if chance.random() < 0.7 else None,
            "synonyms": chance.sample(_WORDS, chance.randint(0, 2)),
        }

    def _domain(self) -> str:
        return f"d{self._chance.randrange(max(2, self._shops * 2 // 3))}.internal"
