"""Makes the images that a registry would have: Debian with Python, Redis from it, OpenSearch from Maven's artefacts.

What needs the network is made before the engine starts, with this machine's own configuration of apt and pip; none of
that gets into an image.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.containers.machine import OWN_PROCESSES, Machine
from tests.support.loopback import listening
from tests.support.real.node_build import NodeBuild
from tests.support.real.sources import REPOSITORY

BASE: Final = "containers-test/debian:1"
REDIS: Final = "containers-test/redis:1"
OPENSEARCH: Final = "containers-test/opensearch:1"
_PACKAGES: Final = ("python3-venv", "python-is-python3", "redis-server", "curl")
_NOT_RUNTIME: Final = ("src.zip", "jmods", "demo", "man", "legal", "include")
_HERE: Final = Path(__file__).parent


def base_command(folder: Path) -> list[str]:
    """Writes base.tar: this machine's release of Debian, with what the images of Python, Redis and OpenSearch need."""
    release = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text("utf-8"), re.MULTILINE)
    assert release is not None
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
    packages = f"--include={','.join(_PACKAGES)}"
    words = ["mmdebstrap", "--quiet", "--variant=minbase", packages, *left_out, release[1], str(folder / "base.tar")]
    # It mounts this machine's /dev and /proc into what is removed at the end.
    return [*OWN_PROCESSES, *words]


def wheels_command(folder: Path) -> list[str]:
    """Fills the folder wheels with the locked packages.

    Debian's Python runs this environment's pip, because the images have that Python, and markers of the lock are about
    its exact version.
    """
    pip = find_spec("pip")
    assert pip is not None
    assert pip.origin is not None
    program = ["/usr/bin/python3", str(Path(pip.origin).parent)]
    wanted = ["--only-binary", ":all:", "--require-hashes", "--no-deps", "--dest", str(folder / "wheels")]
    return [*program, "download", "--quiet", *wanted, "--requirement", str(REPOSITORY / "requirements.lock")]


@contextmanager
def package_index(wheels: Path, folder: Path) -> Iterator[Path]:
    """Serve the wheels on loopback; yields a configuration of pip that names this server and no other."""

    class Wheels(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:  # noqa: ANN401 - as the base class
            super().__init__(*given, directory=str(wheels))

    with listening(Wheels) as port:
        configuration = folder / "pip.conf"
        configuration.write_text(f"[global]\nno-index = true\nfind-links = http://127.0.0.1:{port}/\n", "utf-8")
        yield configuration


def make_engines(machine: Machine, build: NodeBuild) -> None:
    """The images of Redis and OpenSearch, which are used as the composition uses their published ones."""
    context = machine.data / "engines"
    java, jars = context / "java", context / "jars"
    ignored = shutil.ignore_patterns(*_NOT_RUNTIME)
    shutil.copytree(build.jdk.home, java, ignore=ignored, ignore_dangling_symlinks=True)
    jars.mkdir()
    for number, jar in enumerate(build.class_path.split(os.pathsep)):
        # In the order of the class path.
        shutil.copy(jar, jars / f"{number:03d}-{Path(jar).name}")
    shutil.copy(_HERE / "start_opensearch.py", context)
    for name, tag in (("redis", REDIS), ("opensearch", OPENSEARCH)):
        words = ["--file", str(_HERE / "engines.Dockerfile"), "--build-arg", f"BASE={BASE}", "--target", name]
        machine.build(*words, "--tag", tag, str(context))
