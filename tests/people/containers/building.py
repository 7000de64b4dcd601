"""Builds and installs the project by the very steps of the Dockerfile, in folders of a test."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.people.containers.test_composition import copied_sources, stages
from tests.support.real.sources import REPOSITORY

BOUND_S: Final = 120.0
STAMP: Final = ("SHOP_DIRECTORY_COMMIT", "SHOP_DIRECTORY_BUILT_AT")
_PYTHON: Final = "/opt/shop-directory/bin/python"
_WHEELS: Final = "/wheels"


@dataclass(frozen=True, slots=True)
class Installed:
    """The project in an environment of its own; `python` and the command `shop-directory` are in `programs`."""

    programs: Path

    @property
    def python(self) -> Path:
        return self.programs / "python"


def copy_sources(folder: Path) -> Path:
    source = folder / "src"
    source.mkdir(parents=True)
    for name in copied_sources():
        if (REPOSITORY / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(REPOSITORY / name, source / name, ignore=ignored)
        else:
            shutil.copy(REPOSITORY / name, source / name)
    return source


def run(words: list[str], folder: Path, **variables: str) -> None:
    """Run one step; pip and git see no configuration of this machine's user, and no stamp but the given one."""
    environment = {name: value for name, value in os.environ.items() if name not in STAMP} | variables
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=BOUND_S, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}"


def build_wheel(source: Path, wheels: Path, **variables: str) -> None:
    words = shlex.split(_steps()[0].replace(_PYTHON, sys.executable).replace(_WHEELS, str(wheels)))
    assert {"--no-index", "--no-deps", "--no-build-isolation"} <= set(words)
    run(words, source, **variables)


def install(wheels: Path, folder: Path) -> Installed:
    """The Dockerfile's steps that install it and take away what only building needed.

    The dependencies are those that the tests run with; the project itself is not found among them.
    """
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], wheels)
    python = folder / "bin" / "python"
    for step in _steps()[1:]:
        pip = step.replace(f"{_PYTHON} -m pip", f"{sys.executable} -m pip --python {python}")
        run(shlex.split(pip.replace(_WHEELS, str(wheels))), wheels)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A line of a path adds this path alone: the editable install in it stays out of sight.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return Installed(python.parent)


def compile_typeahead(installed: Installed) -> None:
    """The Dockerfile's last step, which compiles the typeahead's machine code unless that comes from an earlier step.

    It finds what an earlier run compiled, which numba uses where source and processor are the same: half a minute less.
    """
    step = stages()[0].of("RUN")[-1].value[0].partition("&&")[2]
    assert "shop_directory.typeahead" in step
    words = shlex.split(step.replace(_PYTHON, str(installed.python)))
    (kernel,) = installed.programs.parent.glob("lib/python*/site-packages/shop_directory/typeahead/kernel")
    earlier = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shop-directory-tests" / "image-kernel"
    _copy_compiled(earlier, kernel / "__pycache__")
    run(words, installed.programs, NUMBA_CPU_NAME=stages()[0].environment()["NUMBA_CPU_NAME"])
    _copy_compiled(kernel / "__pycache__", earlier)


def _copy_compiled(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    # Numba expects all code that an index lists.
    for kind in ("*.nbc", "*.nbi"):
        for path in source.glob(kind):
            shutil.copy(path, target)


def _steps() -> list[str]:
    (building,) = (run.value[0] for run in stages()[0].of("RUN") if "pip wheel" in run.value[0])
    return [step.strip() for step in building.split("&&")]
