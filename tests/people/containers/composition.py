"""docker-compose.yml as Docker's own program reads it: validated against its schema, filled in and merged."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.real.sources import REPOSITORY

BOUND_S: Final = 60.0


def program(name: str) -> str:
    """The path of a program that the development packages bring."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed"
    return found


def composition(**variables: str) -> dict[str, Any]:
    """All of it, as it would be run with these variables in the environment and no file next to it.

    Commands still have `$$` for a single dollar sign.
    """
    words = [program("docker-compose"), "--file", str(REPOSITORY / "docker-compose.yml"), "--env-file", "/dev/null"]
    done = subprocess.run(
        [*words, "config", "--format", "json"],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def words_of(value: Any) -> list[str]:  # noqa: ANN401 - a command as JSON
    """The words of a command as its process gets them."""
    return [str(word).replace("$$", "$") for word in value or []]


def variables_of(service: Mapping[str, Any]) -> dict[str, str]:
    """What a container's environment gets in addition to the image's."""
    return {name: str(value).replace("$$", "$") for name, value in (service.get("environment") or {}).items()}
