"""Reads what operators call the values of policies and of availabilities, in their language, and rows of several kinds.

A row of policies may state one kind, which a column names, or have a column for each kind.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

from indexer.catalogue.sheets.cells import WORDS, is_blank, plain
from indexer.records.faults import UnreadableError
from indexer.records.related import POLICY_FIELDS, RETURN_METHODS

_RETURNS, _PAYMENT, _PROTECTION = POLICY_FIELDS
# The names of the columns of each kind, where each has its own.
COLUMNS_OF_KINDS: Final[Mapping[str, str]] = {
    _RETURNS: "returns return returns_policy return_policy",
    _PAYMENT: "payment_methods payment_method payments payment payment_options",
    _PROTECTION: "buyer_protection purchase_protection protection guarantee trustmark",
}
# The fields that say something of returns, besides their column.
_OF_RETURNS: Final = tuple(name for name in POLICY_FIELDS[_RETURNS] if name != "as_stated")
_PERIOD: Final = re.compile(r"(\d{1,4})[\s-]*([^\W\d_]+)")


def _term(terms: Collection[str], text: str) -> str:
    """One of these terms by itself or by words of the operator, such as `auf Lager`; else the text as `plain`."""
    words = plain(text)
    return next((term for term in terms if words == term or words in WORDS.get(term, ())), words)


availability: Final = partial(_term, ("in_stock", "out_of_stock", "preorder", "discontinued"))
policy_kind: Final = partial(_term, POLICY_FIELDS)
return_category: Final = partial(_term, ("finite", "unlimited", "not_permitted"))
counted_from: Final = partial(_term, ("delivered", "ordered"))


def fees(text: str) -> str:
    """Who pays for returns: `free`, `kostenlos`."""
    return "unknown" if is_blank(text) else _term(("free", "paid"), text)


def days(text: str) -> int:
    """A number of days: `30`, `30 days`, `2 Wochen`."""
    if text.isascii() and text.isdigit():
        return int(text)
    found = _period(text)
    if found is None or _PERIOD.fullmatch(text) is None:
        raise UnreadableError("must be a whole number of days", text)
    return found


def _period(text: str) -> int | None:
    """The days of the one period that a text states; None where it states none, several, or months."""
    periods = _PERIOD.findall(text)
    if len(periods) != 1 or len(re.findall(r"\d+", text)) != 1:
        return None
    number, unit = periods[0]
    weeks = 7 if plain(unit) in WORDS["weeks"] else 1
    return int(number) * weeks if plain(unit) in WORDS["days"] | WORDS["weeks"] else None


def statements(stated: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The cells of each statement of a row of policies that names no kind: of each kind with a cell."""
    common = {name: text for name, text in stated.items() if name not in COLUMNS_OF_KINDS}
    shared = {name: text for name, text in common.items() if name not in {*_OF_RETURNS, "as_stated"}}
    if any(name in stated for name in (_RETURNS, *_OF_RETURNS)):
        said = {_RETURNS: stated[_RETURNS]} if _RETURNS in stated else {}
        yield {**common, "kind": _RETURNS, **said}
    if _PAYMENT in stated:
        yield {**shared, "kind": _PAYMENT, "methods": stated[_PAYMENT]}
    if _PROTECTION in stated:
        yield {**shared, "kind": _PROTECTION, "as_stated": stated[_PROTECTION]}


def returns(text: str) -> dict[str, Any]:
    """What a cell says of returns: `30 days`, `unlimited`, `not permitted`, or another text with a period."""
    words = plain(text)
    if words in WORDS["unlimited"]:
        return {"category": "unlimited"}
    if words in WORDS["not_permitted"] | WORDS["no"] | WORDS["none"]:
        return {"category": "not_permitted"}
    if text.isascii() and text.isdigit():
        return {"category": "finite", "days": int(text)}
    found = _period(text)
    if found is not None:
        return {"category": "finite", "days": found, "as_stated": text}
    longer = WORDS["days"] | WORDS["weeks"] | WORDS["months"] | WORDS["working_days"]
    if any(plain(unit) in longer for _, unit in _PERIOD.findall(text)):
        return {"category": "finite", "as_stated": text}
    raise UnreadableError("must be such as 30 days, unlimited or not permitted", text)


def complete(fields: dict[str, Any]) -> None:
    """Write the values of a policy as the catalogue does, where they depend on each other."""
    kind = fields.get("kind")
    if kind == _RETURNS:
        fields.update({name: said for name, said in fields.pop(_RETURNS, {}).items() if name not in fields})
        if "days" in fields:
            fields.setdefault("category", "finite")
        fields["methods"] = [_term(RETURN_METHODS, method) for method in fields.get("methods", ())]
    if kind == _PAYMENT:
        # Names of payment methods hold no commas.
        fields["methods"] = [
            part.strip() for one in fields.get("methods", ()) for part in one.split(",") if part.strip()
        ]
    if kind == _PROTECTION and plain(fields.get("as_stated", "")) in WORDS["yes"]:
        fields.pop("as_stated")
