"""Finds a JDK, and makes the class path of a test node from Maven's artefacts and our Java source."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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


MAVEN_BOUND_S: Final = 900.0  # the first run on a machine downloads about 100 MB
_SOURCES: Final = Path(__file__).parent / "opensearch_node"
_CLASS_PATH: Final = "class-path"
_JAR: Final = "node.jar"
_ARCHIVE: Final = "classes.jsa"


class BuildError(Exception):
    """Maven or the compiler failed; the message ends with what they printed."""


@dataclass(frozen=True, slots=True)
class NodeBuild:
    """What starts a node: the JDK, and the full class path of `OpenSearchNode`.

    `archive` is the file of its loaded classes, which the JVM maps if it is there: half the time of a start.
    """

    jdk: Jdk
    class_path: str
    archive: Path


def cached_build(jdk: Jdk, environment: Mapping[str, str] = os.environ) -> NodeBuild | None:
    """Returns the finished build for this JDK, or None where there is none or its jars have been removed since."""
    folder = _cache_folder(jdk, environment)
    try:
        jars = (folder / _CLASS_PATH).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    class_path = os.pathsep.join([str(folder / _JAR), jars])
    if not all(Path(jar).is_file() for jar in class_path.split(os.pathsep)):
        return None
    return NodeBuild(jdk, class_path, folder / _ARCHIVE)


def build_node(jdk: Jdk, environment: Mapping[str, str] = os.environ) -> NodeBuild:
    """Returns the build for this JDK, making it first where it is missing (minutes on a machine's first run)."""
    if build := cached_build(jdk, environment):
        return build
    folder = _cache_folder(jdk, environment)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
        fresh = Path(scratch) / "fresh"
        fresh.mkdir()
        _resolve_jars(jdk, fresh, environment)
        _compile(jdk, fresh)
        if cached_build(jdk, environment) is None:  # else another run was faster, and may be starting from its build
            _put_in_place(fresh, folder, Path(scratch) / "stale")
    build = cached_build(jdk, environment)
    if build is None:
        raise BuildError(f"the jars named in {folder / _CLASS_PATH} are not on the disk")
    return build


def _cache_folder(jdk: Jdk, environment: Mapping[str, str]) -> Path:
    stated = environment.get("XDG_CACHE_HOME")
    cache = Path(stated) if stated else Path.home() / ".cache"
    digest = hashlib.sha256(jdk.version_text.encode())
    for source in ("pom.xml", "OpenSearchNode.java"):
        digest.update((_SOURCES / source).read_bytes())
    return cache / "shop-directory-tests" / digest.hexdigest()[:16]


def _resolve_jars(jdk: Jdk, fresh: Path, environment: Mapping[str, str]) -> None:
    maven = shutil.which("mvn", path=environment.get("PATH"))
    if maven is None:
        raise BuildError("no mvn on the PATH; install Maven, for example the package maven")
    # Maven writes next to its pom, and the source tree may be read-only.
    pom = shutil.copy(_SOURCES / "pom.xml", fresh)
    output = f"-Dmdep.outputFile={fresh / _CLASS_PATH}"
    command = [maven, "-q", "-B", "-f", pom, "dependency:build-classpath", output]
    _run(command, environment={**environment, "JAVA_HOME": str(jdk.home)})


def _compile(jdk: Jdk, fresh: Path) -> None:
    jars = (fresh / _CLASS_PATH).read_text(encoding="utf-8").strip()
    strictness = ["--release", str(MINIMUM_MAJOR), "-proc:none", "-Xlint:all", "-Werror"]
    source = _SOURCES / "OpenSearchNode.java"
    classes = fresh / "classes"
    _run([jdk.javac, *strictness, "-cp", jars, "-d", classes, source], environment=None)
    _run([jdk.home / "bin" / "jar", "--create", "--file", fresh / _JAR, "-C", classes, "."], environment=None)


def _run(command: Sequence[str | Path], environment: Mapping[str, str] | None) -> None:
    try:
        subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MAVEN_BOUND_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
        printed = failure.stdout or ""
        text = printed if isinstance(printed, str) else printed.decode(errors="replace")
        raise BuildError(f"{failure}\n{text[-4_000:]}") from failure


def _put_in_place(fresh: Path, folder: Path, stale: Path) -> None:
    with suppress(FileNotFoundError):
        folder.rename(stale)  # a build whose jars are gone; the scratch folder takes it along
    try:
        fresh.rename(folder)
    except OSError:
        if not (folder / _CLASS_PATH).is_file():
            raise  # another run's build, as good as ours, is the only thing that may stand there
