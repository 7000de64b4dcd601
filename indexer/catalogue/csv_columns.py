"""Maps the columns of a CSV to the fields of a shop, by the columns' names and the operator's `--map` options.

Columns that say which shops are suspended are recognised, and their values are converted to visibilities.
"""

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indexer.records.problems import CatalogueError

# By field: what a shop has without such a column, and names of columns, in lower case with _ for other characters than
# letters and digits; the first name that a column has wins.
_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "id": ("made from the domain", "id shop_id shopid merchant_id store_id key identifier"),
    "name": ("", "name shop_name store_name merchant_name display_name shop store merchant brand title company"),
    "domain": (
        "",
        "domain domain_name shop_domain url shop_url website website_url web homepage site host hostname link",
    ),
    "categories": ("--category", "categories category category_name sector industry vertical tags"),
    "countries": ("not stated", "countries country country_code country_codes markets market"),
    "popularity": ("not known", "popularity score weight traffic visits visitors"),
    "aliases": ("none", "aliases alias aka also_known_as other_names alternative_names synonyms"),
    "checkout_hosts": ("none", "checkout_hosts checkout_host checkout_domains checkout_domain"),
    "visibility": ("public", "visibility"),
    "source": ("not stated", "source"),
}
FIELDS: Final = tuple(_FIELDS)
_REQUIRED: Final = ("name", "domain")
_NO_LETTER_OR_DIGIT: Final = re.compile(r"[\W_]+")
# Words of columns that say which shops are shown, by what they mean.
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    meaning: frozenset(" ".join(by_language.values()).split())
    for meaning, by_language in tomllib.loads(
        Path(__file__).with_name("csv_words.toml").read_text(encoding="utf-8")
    ).items()
}
VISIBILITIES: Final = ("public", "under_review", "removed")
# V1: the length of a value in messages.
_MAX_SHOWN: Final = 60
_MAX_LISTED: Final = 20
# Different values that are counted; more than a status has.
_MAX_COUNTED: Final = 1_000


@dataclass(slots=True)
class Values:
    """The values of a column that are not blank, with the number of their rows and one spelling of each.

    Of the first thousand values, in lower case; the rows of `others` are only counted.
    """

    name: str
    rows: Counter[str] = field(default_factory=Counter)
    spellings: dict[str, str] = field(default_factory=dict)
    others: int = 0

    def add(self, text: str) -> None:
        """Count the value of a row."""
        folded = text.casefold()
        if folded in self.rows or len(self.rows) < _MAX_COUNTED:
            self.rows[folded] += 1
            self.spellings.setdefault(folded, text)
        else:
            self.others += 1

    @property
    def is_status(self) -> bool:
        """Whether the column says which shops are suspended, by its name or its values."""
        name = plain(self.name)
        if self.rows and (name.rpartition("_")[2] in _WORDS["columns"] or name.endswith("status")):
            return True
        known = sum(rows for value, rows in self.rows.items() if value in _WORDS["shown"] | _WORDS["hidden"])
        return bool(_WORDS["hidden"] & self.rows.keys()) and 2 * known >= self.rows.total() + self.others

    def unknown(self, stated: Mapping[str, str]) -> Sequence[str]:
        """The values that are no visibility and have none stated."""
        return [value for value in self.rows if value not in VISIBILITIES and value not in stated]

    def status_as_text(self) -> str:
        """What is wrong with a column that looks like a status and is not mapped, and what to type."""
        return (
            f"the column {self.name!r} looks as if it said which shops are suspended ({self._listed(self.rows)}), and"
            " nothing maps it, so that all of them would be public: say what its values mean, such as"
            f" `{self._options(self.rows)}`, or publish all of them by `--map {shlex.quote(f'{self.name}=')}`"
        )

    def unknown_as_text(self, unknown: Sequence[str]) -> str:
        """What is wrong with values that are no visibility, and what to type."""
        return (
            f"the column {self.name!r} has values that are no visibility ({self._listed(unknown)}): say what they mean,"
            f" such as `{self._options(unknown)}`, or leave these rows out by --skip-invalid"
        )

    def _most_frequent(self, chosen: Iterable[str]) -> list[tuple[str, int]]:
        return Counter({value: self.rows[value] for value in chosen}).most_common(_MAX_LISTED)

    def _listed(self, chosen: Collection[str]) -> str:
        texts = [f"{self.spellings[value][:_MAX_SHOWN]!r} {rows:,}" for value, rows in self._most_frequent(chosen)]
        more = len(chosen) - len(texts)
        return ", ".join([*texts, f"{more:,} more values"] if more else texts)

    def _options(self, chosen: Iterable[str]) -> str:
        return " ".join(
            f"--map-value {shlex.quote(f'{self.name}:{self.spellings[value]}={self._suggested(value)}')}"
            for value, _ in self._most_frequent(chosen)
            if len(value) <= _MAX_SHOWN
        )

    def _suggested(self, value: str) -> str:
        """The visibility that a value most probably means; a value that is not known hides the shop."""
        asks_if_shown = plain(self.name).rpartition("_")[2] in _WORDS["shown"]
        shown = (
            (value in _WORDS["yes"]) == asks_if_shown
            if value in _WORDS["yes"] | _WORDS["no"]
            else value in _WORDS["shown"]
        )
        if shown or value in VISIBILITIES:
            return VISIBILITIES[0] if shown else value
        return VISIBILITIES[2] if value in _WORDS["removed"] else VISIBILITIES[1]


def stated_values(pairs: Sequence[str], header: Sequence[str]) -> tuple[str | None, Mapping[str, str]]:
    """The column that `--map-value` options are about, and the visibility of each value in lower case.

    Raises CatalogueError if an option has another form, names no column or no visibility, or they are of several
    columns.
    """
    named: set[str] = set()
    visibilities: dict[str, str] = {}
    for pair in pairs:
        left, _, visibility = pair.rpartition("=")
        # The name of a column may hold a colon, and so may a value.
        splits = [(left[:at], left[at + 1 :]) for at, character in enumerate(left) if character == ":"]
        found = next((split for split in splits if position_of(split[0], header) is not None), None)
        if found is None or visibility not in VISIBILITIES:
            raise CatalogueError(
                f"--map-value {pair!r} is wrong: it must be COLUMN:VALUE=VISIBILITY, with a column of the file"
                f" ({', '.join(filter(None, header))}) and a visibility ({', '.join(VISIBILITIES)})"
            )
        named.add(header[position_of(found[0], header) or 0])
        visibilities[found[1].strip().casefold()] = visibility
    if len(named) > 1:
        raise CatalogueError(f"--map-value names several columns ({', '.join(sorted(named))}): one has the visibility")
    return next(iter(named), None), visibilities


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of the columns of a CSV: the position, from 0, of each field that has one.

    `settled` are the positions of the columns that `--map` names, also of those that it leaves out.
    """

    positions: Mapping[str, int]
    header: Sequence[str]
    settled: frozenset[int] = frozenset()

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of the columns without a field; a column may have no name, or that of another one."""
        return tuple(self.header[position] for position in self.unused_positions())

    def as_text(self) -> str:
        """The mapping as text, one field a line."""
        lines = [f"  {field:<15} {self._meaning(field)}" for field in FIELDS]
        unused = [self._shown(position) for position in self.unused_positions() if self.header[position]]
        # Spreadsheets end each row with empty cells.
        if nameless := len(self.unused) - len(unused):
            unused.append(f"{nameless} without a name")
        return "\n".join(["Columns:", *lines, f"  {'not used':<15} {', '.join(unused) or 'none'}"])

    def unused_positions(self) -> list[int]:
        """The positions of the columns without a field."""
        return [position for position in range(len(self.header)) if position not in self.positions.values()]

    def _meaning(self, field: str) -> str:
        return f"column {self._shown(self.positions[field])}" if field in self.positions else _FIELDS[field][0]

    def _shown(self, position: int) -> str:
        """A column's name, with its number where several have that name."""
        name = self.header[position]
        several = [plain(other) for other in self.header].count(plain(name)) > 1
        return f"{name!r} (column {position + 1})" if several else repr(name)


def columns_of(header: Sequence[str], stated: Sequence[str]) -> Columns:
    """The fields of the columns; `COLUMN=FIELD` overrides their names, an empty FIELD leaves a column out.

    Raises CatalogueError if a stated column or field does not exist, or name or domain have no column.
    """
    positions: dict[str, int] = {}
    settled: set[int] = set()
    for pair in stated:
        column, equals, field = pair.rpartition("=")
        position = position_of(column, header) if equals else None
        if position is None or (field and field not in FIELDS):
            raise CatalogueError(
                f"--map {pair!r} is wrong: it must be COLUMN=FIELD, with a column of the file ({_names(header)})"
                f" and a field ({', '.join(FIELDS)})"
            )
        settled.add(position)
        if field:
            positions[field] = position
    for field, (_, names) in _FIELDS.items():
        found = [position_of(name, header) for name in names.split()]
        usable = [position for position in found if position is not None and position not in settled]
        if usable:
            positions.setdefault(field, usable[0])
    missing = [field for field in _REQUIRED if field not in positions]
    if missing:
        options = " ".join(f"--map COLUMN={field}" for field in missing)
        raise CatalogueError(
            f"no column is recognised as the {' or the '.join(missing)} (there are: {_names(header)}): name it by"
            f" {options}"
        )
    return Columns(positions, tuple(header), frozenset(settled))


def position_of(column: str, header: Sequence[str]) -> int | None:
    """The position of a column by its name; None if there is none."""
    named = [plain(name) for name in header]
    return named.index(plain(column)) if plain(column) in named else None


def _names(header: Sequence[str]) -> str:
    return ", ".join(filter(None, header))


def plain(name: str) -> str:
    """A column's name in lower case, with _ for other characters than letters and digits."""
    return _NO_LETTER_OR_DIGIT.sub("_", name.casefold()).strip("_")
