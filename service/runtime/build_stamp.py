"""Which build this is: commit and time, from one source alone. Of a build that does not know, nothing is made up.

The environment comes first. Without it, the file counts that the build hook has put into the wheel (hatch_build.py).
This module imports nothing of its own package: the hook runs it where nothing else is installed yet.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

STAMP_FILE: Final = Path(__file__).with_name("build_stamp.json")

_COMMIT: Final = re.compile("[0-9a-f]{40}")
_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


@dataclass(frozen=True, slots=True)
class BuildStamp:
    """What a build says of itself.

    Attributes:
        commit: 40 hexadecimal digits in lower case.
        built_at: RFC 3339, UTC with `Z`.
    """

    commit: str
    built_at: str


def stamp_of_build(commit: str | None, built_at: str | None, file: Path = STAMP_FILE) -> BuildStamp | None:
    """What this build says of itself; None when it does not know, or says it wrongly.

    Args:
        commit: from the environment; None when it says nothing.
        built_at: from the environment as well. Of a half-given pair the other half is not taken from the file.
        file: what the build hook wrote, where it did.
    """
    if commit is None and built_at is None:
        commit, built_at = _stored(file)
    return checked(commit, built_at)


def checked(commit: object, built_at: object) -> BuildStamp | None:
    """The stamp, if both halves are there and well-formed."""
    if not isinstance(commit, str) or not isinstance(built_at, str):
        return None
    return BuildStamp(commit, built_at.replace("+00:00", "Z")) if is_commit(commit) and is_time(built_at) else None


def is_commit(text: str) -> bool:
    """Whether it is a commit: 40 hexadecimal digits in lower case."""
    return _COMMIT.fullmatch(text) is not None


def is_time(text: str) -> bool:
    """Whether it is an RFC 3339 time in UTC, with `Z` or `+00:00`."""
    if _UTC.fullmatch(text) is None:
        return False
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _stored(file: Path) -> tuple[Any, Any]:
    try:
        document = json.loads(file.read_bytes())
        return document["commit"], document["built_at"]
    except (OSError, ValueError, TypeError, KeyError):
        return None, None
