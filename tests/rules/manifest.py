"""The manifest of rules as values.

A rule is written once, in manifest.toml; tests name it by its id and nothing else repeats it.
"""

import tomllib
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

MANIFEST: Final = Path(__file__).with_name("manifest.toml")

# The pieces of work done so far: each rule up to this scope must have a test. Raised when the next piece begins.
CURRENT_SCOPE: Final = 5


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
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


def read_manifest() -> tuple[Rule, ...]:
    """The rules of the manifest, in its order.

    Raises:
        ValidationError: a rule has other fields or types than those of `Rule`.
    """
    return TypeAdapter(tuple[Rule, ...]).validate_python(tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["rules"])
