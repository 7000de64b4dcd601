"""Finds a JDK that OpenSearch runs on.

All the usual locations are read, and the newest JDK of version 21 or later is chosen.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MINIMUM_MAJOR: Final = 21
USUAL_ROOTS: Final = (
    "/usr/lib/jvm/*",
    "/opt/*",
    "~/.sdkman/candidates/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)

_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+(?:\.\d+)*)', re.MULTILINE)


class JdkMissingError(Exception):
    """No JDK of version 21 or later is on this machine; the message says what to install."""


@dataclass(frozen=True, slots=True, order=True)
class Jdk:
    """A JDK: its version as numbers, `(25, 0, 3)`, and its home folder. Newer ones are greater."""

    version: tuple[int, ...]
    home: Path

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def javac(self) -> Path:
        return self.home / "bin" / "javac"

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


def find_jdk(environment: Mapping[str, str] = os.environ, roots: Sequence[str] = USUAL_ROOTS) -> Jdk:
    """Returns the newest JDK of at least `MINIMUM_MAJOR`, from `JAVA_HOME`, `PATH` and the usual folders.

    The roots are glob patterns of folders that may be a JDK's home; `~` is the user's home.
    """
    homes = {home.resolve() for home in _possible_homes(environment, roots)}
    found = sorted(
        Jdk(version, home)
        for home in homes
        if (home / "bin" / "javac").is_file() and (version := _version(home)) is not None
    )
    if found and found[-1].version[0] >= MINIMUM_MAJOR:
        return found[-1]
    older = ", ".join(f"{jdk.version_text} in {jdk.home}" for jdk in found) or "none of any version"
    raise JdkMissingError(
        f"no JDK of version {MINIMUM_MAJOR} or later (found: {older}); install one, for example the package "
        f"openjdk-{MINIMUM_MAJOR}-jdk or a Temurin build, and put it on the PATH or in JAVA_HOME"
    )


def _version(home: Path) -> tuple[int, ...] | None:
    """The version of the JDK at `home` as numbers, or None where it does not state it, as each since Java 7 does."""
    release = home / "release"
    stated = _VERSION.search(release.read_text(encoding="utf-8", errors="replace") if release.is_file() else "")
    return tuple(map(int, stated[1].split("."))) if stated else None


def _possible_homes(environment: Mapping[str, str], roots: Sequence[str]) -> Iterator[Path]:
    if stated := environment.get("JAVA_HOME"):
        yield Path(stated)
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and (java := shutil.which("java", path=folder)):
            yield Path(java).resolve().parent.parent
    for root in roots:
        pattern = Path(root).expanduser()
        yield from Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
