"""Puts commit and build time into the built package, so that /version knows them wherever it is installed.

From the environment (SHOP_DIRECTORY_COMMIT, SHOP_DIRECTORY_BUILT_AT), else from git, else from the source archive that
is being built. None of them: the build does not know itself, and says so.
"""

import json
import os
import runpy
import shutil
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMMIT: Final = "SHOP_DIRECTORY_COMMIT"
_BUILT_AT: Final = "SHOP_DIRECTORY_BUILT_AT"
_IN_ARCHIVE: Final = "build_stamp.json"
_IN_WHEEL: Final = "shop_directory/build_stamp.json"
_GIT_SECONDS: Final = 30


class BuildStampHook(BuildHookInterface[Any]):
    """Writes the stamp into wheels and source archives."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file with the stamp. An editable install has none: it runs whatever the checkout holds.

        Raises:
            SystemExit: the environment says only half of it, or says it wrongly.
        """
        if version == "editable":
            return
        root = Path(self.root)
        stamp = _from_environment(root) or _from_git(root) or _from_archive(root)
        if stamp is None:
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="build-stamp-"))
        file = self._scratch / _IN_ARCHIVE
        file.write_text(json.dumps(stamp), encoding="utf-8")
        build_data["force_include"][str(file)] = _IN_ARCHIVE if self.target_name == "sdist" else _IN_WHEEL

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove temporary files."""
        shutil.rmtree(getattr(self, "_scratch", ""), ignore_errors=True)


def _from_environment(root: Path) -> dict[str, str] | None:
    commit, built_at = (os.environ.get(name, "") for name in (_COMMIT, _BUILT_AT))
    if not commit and not built_at:
        return None
    rules = runpy.run_path(str(root / "shop_directory" / "build_stamp.py"))
    if rules["stamp_of_build"](commit, built_at) is None:
        raise SystemExit(
            f"{_COMMIT} and {_BUILT_AT} go together: 40 hexadecimal digits in lower case, and a time such as"
            " 2030-01-31T00:00:00Z."
        )
    return {"commit": commit, "built_at": built_at}


def _from_git(root: Path) -> dict[str, str] | None:
    # Only a repository of our own: an unpacked archive may lie in somebody else's.
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return {"commit": answer.stdout.strip(), "built_at": f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"}


def _from_archive(root: Path) -> dict[str, str] | None:
    try:
        stored: dict[str, str] = json.loads((root / _IN_ARCHIVE).read_bytes())
    except (OSError, ValueError):
        return None
    return stored
