"""The manifest of rules as values.

A rule is written once, in manifest.toml; tests name it by its id and nothing else repeats it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = Path(__file__).with_name("manifest.toml")

# The pieces of work done so far: each rule up to this scope must have a test. Raised when the next piece begins.
CURRENT_SCOPE: Final = 5


@dataclass(frozen=True, slots=True)
class Rule:
    """One obligation.

    Attributes:
        id: a page's rule such as "M6", or one more obligation of it such as "M6.ignored".
        scope: number of the piece of work that brings it, 1 to 6.
        statement: the obligation in one line.
    """

    id: str
    scope: int
    statement: str


def parse_manifest(text: str) -> tuple[Rule, ...]:
    """The rules of a manifest in TOML, in its order.

    Raises:
        ValueError: the text is no TOML, has no rules, or a rule has other fields or types than those of `Rule`.
    """
    tables = tomllib.loads(text).get("rules")
    if not isinstance(tables, list) or not tables:
        raise ValueError("a manifest has a list of rules")
    return tuple(_rule(table) for table in tables)


def read_manifest(path: Path = MANIFEST) -> tuple[Rule, ...]:
    """The rules of the manifest file."""
    return parse_manifest(path.read_text(encoding="utf-8"))


def _rule(table: Any) -> Rule:  # noqa: ANN401 - whatever TOML holds
    match table:
        case {"id": str(rule_id), "scope": int(scope), "statement": str(statement), **others} if not others:
            return Rule(rule_id, scope, statement)
    raise ValueError(f"a rule has id, scope and statement, and nothing else: {table!r}")
