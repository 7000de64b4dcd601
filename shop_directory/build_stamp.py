"""The commit and the time of this build, both of the environment or of the wheel's file, if known.

The build hook (hatch_build.py) runs this module before its package can be imported.
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
    """The identity of a build: 40 hexadecimal digits in lower case, and an RFC 3339 time in UTC with `Z`."""

    commit: str
    built_at: str


def stamp_of_build(commit: str | None, built_at: str | None) -> BuildStamp | None:
    """The build's stamp, all from the environment or all from the file; None when it is unknown or malformed."""
    if commit is None and built_at is None:
        commit, built_at = _read_stamp()
    if not isinstance(commit, str) or not isinstance(built_at, str):
        return None
    if _COMMIT.fullmatch(commit) is None or not is_time(built_at):
        return None
    return BuildStamp(commit, built_at.replace("+00:00", "Z"))


def is_time(text: str) -> bool:
    """Whether a text is an RFC 3339 time in UTC, with `Z` or `+00:00`."""
    if _UTC.fullmatch(text) is None:
        return False
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _read_stamp() -> tuple[Any, Any]:
    try:
        document = json.loads(STAMP_FILE.read_bytes())
        return document["commit"], document["built_at"]
    except (OSError, ValueError, TypeError, KeyError):
        return None, None
