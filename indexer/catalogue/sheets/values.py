"""Counts the values of a sheet: of columns that look like a status, and of cells that can't be read.

Values are shown to the operator whose file it is, at most 60 characters of each (V1).
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from indexer.catalogue.sheets.cells import WORDS, is_blank, is_named, is_place, is_zero, minimum, plain, plain_name
from indexer.catalogue.sheets.dates import is_date
from indexer.records.faults import UnreadableError
from indexer.records.problems import MAX_SHOWN, Problem, shown

VISIBILITIES: Final = ("public", "under_review", "removed")
_TWO_DECIMALS: Final = re.compile(r"\d[\d.,]*[.,]\d\d")
_PERCENTAGE: Final = re.compile(r"[-–−]?\s*(?:%\s*\d+(?:[.,]\d+)?|\d+(?:[.,]\d+)?\s*%)")
_MAX_LISTED: Final = 20
# Different values that are counted; more than a status has.
_MAX_COUNTED: Final = 1_000


@dataclass(slots=True)
class Values:
    """Values that are not blank, with the number of their rows, and one spelling and the first line of each.

    Of the first thousand values, in lower case; the rows of `others` are only counted.
    """

    rows: Counter[str] = field(default_factory=Counter)
    spellings: dict[str, str] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    others: int = 0

    def add(self, text: str, line: int) -> None:
        """Count the value of a row."""
        folded = text.casefold()
        if folded in self.rows or len(self.rows) < _MAX_COUNTED:
            self.rows[folded] += 1
            self.spellings.setdefault(folded, text)
            self.first.setdefault(folded, line)
        else:
            self.others += 1

    def most_frequent(self, chosen: Iterable[str]) -> list[tuple[str, int]]:
        """The values of these that are listed, with the number of their rows."""
        return Counter({value: self.rows[value] for value in chosen}).most_common(_MAX_LISTED)


@dataclass(slots=True)
class Column(Values):
    """The values of a column that may say which shops are suspended."""

    name: str = ""

    @property
    def is_status(self) -> bool:
        """Whether the column says which shops are suspended, by its name or its values."""
        name = plain_name(self.name)
        words, values = set(name.split("_")), {plain(value) for value in self.rows}
        last = name.rpartition("_")[2]
        if values and (last in WORDS["columns"] or name.endswith("status")):
            return True
        # Such as deleted_at, and Active (Y/N).
        if words & WORDS["columns"] & WORDS["hidden"] and values:
            return True
        switches = WORDS["columns"] | WORDS["asks_if_shown"] | WORDS["asks_if_hidden"]
        is_switch = bool(words & switches) or last in WORDS["shown"] | WORDS["hidden"]
        if is_switch and values and values <= WORDS["yes"] | WORDS["no"]:
            return True
        known = sum(rows for value, rows in self.rows.items() if plain(value) in WORDS["shown"] | WORDS["hidden"])
        return bool(WORDS["hidden"] & values) and 2 * known >= self.rows.total() + self.others

    def unknown(self, stated: Mapping[str, str]) -> Sequence[str]:
        """The values that are not a visibility and have none stated."""
        return [value for value in self.rows if value not in VISIBILITIES and value not in stated]

    def status_as_text(self, kind: str, read_from: str | None = None) -> str:
        """What is wrong with an unmapped status, and what to type; `read_from` has the visibility, if any."""
        if read_from is not None:
            return (
                f"the column {self.name!r} looks as if it said which {kind} are suspended ({self._listed(self.rows)}),"
                f" and the visibility is read from {read_from!r} alone: put both into one column, or leave this one out"
                f" by `--map {shlex.quote(f'{self.name}=')}`"
            )
        return (
            f"the column {self.name!r} looks as if it said which {kind} are suspended ({self._listed(self.rows)}), and"
            " nothing maps it, so that all of them would be public: say what its values mean, such as"
            f" `{self._options(self.rows)}`, or publish all that were not hidden before by"
            f" `--map {shlex.quote(f'{self.name}=')}`"
        )

    def unknown_as_text(self, unknown: Sequence[str]) -> str:
        """The problem with values that are not a visibility, and what to type."""
        return (
            f"the column {self.name!r} has values that are no visibility ({self._listed(unknown)}): say what they mean,"
            f" such as `{self._options(unknown)}`, or leave these rows out by --skip-invalid"
        )

    def limit(self, kind: str, fields: Collection[str]) -> str | None:
        """What is wrong with an unmapped column that may limit where or when a record counts; None if nothing.

        Most of its cells, else its name, tell that; it may be one of these `fields` of the kind.
        """
        if self.rows.keys() <= WORDS["yes"] | WORDS["no"]:
            return None  # no is also the code of a country
        nothing = WORDS["none"] | WORDS["unlimited"]
        said = {value: rows for value, rows in self.rows.items() if not (is_blank(value) or plain(value) in nothing)}
        possible = [one for one in _LIMITS if any(name in fields for name in one.of)]
        for one in possible:
            if 2 * sum(rows for value, rows in said.items() if one.holds(value)) > sum(said.values()) + self.others:
                return self._limit_as_text(kind, f"holds {one.what}", one, fields)
        for one in possible:
            if is_named(self.name, one.words) and any(map(one.may_hold, said)):
                return self._limit_as_text(kind, f"has a name as columns of {one.what} have", one, fields)
        return None

    def _limit_as_text(self, kind: str, is_such: str, limit: "_Limit", fields: Collection[str]) -> str:
        options = " or ".join(f"`--map {shlex.quote(f'{self.name}={name}')}`" for name in limit.of if name in fields)
        return (
            f"the column {self.name!r} {is_such} ({self._listed(self.rows)}), and nothing maps it, so that what it"
            f" says of where or when {kind} count may be lost: name it by {options}, or leave it out by"
            f" `--ignore {shlex.quote(self.name)}`"
        )

    def _listed(self, chosen: Collection[str]) -> str:
        texts = [f"{shown(self.spellings[value])} {rows:,}" for value, rows in self.most_frequent(chosen)]
        more = len(chosen) - len(texts)
        return ", ".join([*texts, f"{more:,} more values"] if more else texts)

    def _options(self, chosen: Iterable[str]) -> str:
        return " ".join(
            f"--map-value {shlex.quote(f'{self.name}:{self.spellings[value]}={self._suggested(value)}')}"
            for value, _ in self.most_frequent(chosen)
            if len(value) <= MAX_SHOWN
        )

    def _suggested(self, value: str) -> str:
        """The visibility that a value most probably means; a value that is not known hides the record."""
        name = set(plain_name(self.name).split("_"))
        asks_if_shown = bool(name & (WORDS["shown"] | WORDS["asks_if_shown"])) != bool(name & WORDS["negation"])
        word = plain(value)
        is_shown = (
            (word in WORDS["yes"]) == asks_if_shown if word in WORDS["yes"] | WORDS["no"] else word in WORDS["shown"]
        )
        if is_shown or word in VISIBILITIES:
            return VISIBILITIES[0] if is_shown else word
        return VISIBILITIES[2] if word in WORDS["removed"] else VISIBILITIES[1]


@dataclass(slots=True)
class Fault(Values):
    """The rows with one fault of one field, by the values that have it."""

    lines: int = 0
    first_line: int = 0

    def note(self, line: int, values: Iterable[str]) -> None:
        """Count a row with this fault, and its values."""
        self.lines += 1
        self.first_line = self.first_line or line
        for value in values:
            self.add(value, line)

    def as_text(self) -> str:
        """The rows, grouped by their values: `'Deutschland' (120 rows, first 19), 'Atlantis'`."""
        if self.lines == 1:
            return ", ".join(shown(text) for text in self.spellings.values())
        texts = [
            f"{shown(self.spellings[value])} ({_rows(rows, self.first[value])})"
            for value, rows in self.most_frequent(self.rows)
        ]
        if more := self.rows.total() + self.others - sum(rows for _, rows in self.most_frequent(self.rows)):
            texts.append(f"{more:,} rows with other values")
        return ", ".join(texts) or f"({_rows(self.lines, self.first_line)})"

    def as_json(self) -> dict[str, Any]:
        """The rows, with the most frequent values, each as in text."""
        values = [
            {"value": self.spellings[value][:MAX_SHOWN], "rows": rows, "line": self.first[value]}
            for value, rows in self.most_frequent(self.rows)
        ]
        return {"rows": self.lines, "line": self.first_line, "values": values}


class Faults:
    """All faults of a sheet, by field and reason, which are few: reasons hold no values."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[tuple[str | None, str], Fault] = {}

    def note(self, line: int, name: str | None, reason: str, values: Iterable[str]) -> None:
        """Count a row with a fault of the field of this name, or of the row as a whole."""
        self._found.setdefault((name, reason), Fault()).note(line, values)

    def as_text(self) -> Iterator[str]:
        """One line for each field and reason, in the order of the sheet."""
        for (name, reason), fault in self._found.items():
            problem = Problem(self._file, fault.first_line, name, reason)
            rows = fault.as_text()
            yield f"{problem}{'' if not rows else f' {rows}' if rows.startswith('(') else f': {rows}'}"

    def as_json(self) -> list[dict[str, Any]]:
        """As `as_text`."""
        return [{"field": name, "reason": reason, **fault.as_json()} for (name, reason), fault in self._found.items()]


def _is_amount(text: str) -> bool:
    """Whether a text is money, or a number with two decimals as prices have."""
    if _TWO_DECIMALS.fullmatch(text):
        return True
    with suppress(UnreadableError):
        minimum(text)
        return (
            not text.replace(".", "").replace(",", "").isdigit() and re.search(r"[^\W\d]|[^\w\s.,'’]", text) is not None
        )
    return False


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


class _Limit(NamedTuple):
    """What may limit where or when a record counts, and how its columns are told.

    Most cells are such as `holds` takes, or the name has one of the `words` and a cell is such as `may_hold` takes.
    `of` are the fields that the column may be one of.
    """

    what: str
    holds: Callable[[str], bool]
    of: tuple[str, ...]
    words: str = ""
    may_hold: Callable[[str], bool] = _has_digit


_LIMITS: Final = (
    _Limit("dates", is_date, ("valid_until", "valid_from"), "limits_in_time"),
    _Limit(
        "countries or regions",
        is_place,
        ("countries", "country", "blocked_countries", "excluded"),
        "limits_in_place",
        lambda text: plain(text) not in WORDS["world"] | WORDS["yes"],
    ),
    _Limit("percentages", lambda text: _PERCENTAGE.fullmatch(text) is not None, ("discount",)),
    _Limit(
        "amounts of money",
        _is_amount,
        ("min_order", "discount"),
        "limits_in_money",
        lambda text: _has_digit(text) and not is_zero(text),
    ),
)


def _rows(number: int, first: int) -> str:
    return f"line {first}" if number == 1 else f"{number:,} rows, first {first}"
