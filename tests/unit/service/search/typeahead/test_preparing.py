"""The first build of an installation compiles the kernel, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from service.search.typeahead import preparing

_PROGRAM: Final = "preparing_shown"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the program writes which stands for the compiler; the installation has no machine code."""
    written = tmp_path / "shown"
    (tmp_path / f"{_PROGRAM}.py").write_text(f"import time\ntime.sleep(1)\nopen({str(written)!r}, 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(preparing, "_PROGRAM", _PROGRAM)
    monkeypatch.setattr(preparing, "__file__", str(tmp_path / "nowhere.py"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return written


def test_the_end_waits_for_the_compiler(shown: Path) -> None:
    with preparing.compiling():
        assert not shown.exists()
    assert shown.exists()


def test_work_that_failed_ends_the_compiler(shown: Path) -> None:
    with pytest.raises(ValueError, match="failed"), preparing.compiling():
        raise ValueError("failed")
    assert not shown.exists()


@pytest.mark.parametrize("folder", ["kernel/__pycache__", "cache/kernel_1"])
def test_where_there_is_machine_code_nothing_is_compiled(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "suggest.nbi").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    with preparing.compiling():
        pass
    assert not shown.exists()


def test_it_imports_no_part_of_the_kernel() -> None:
    program = "import sys, service.search.typeahead.preparing; print('numba' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout.split() == ["False", "False"]
