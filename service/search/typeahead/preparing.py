"""Compiles the kernel in another process where nothing has compiled it yet; this imports no part of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_CODE: Final = "*.nbi"
_PROGRAM: Final = "service.search.typeahead"


@contextmanager
def compiling() -> Iterator[None]:
    """Within, the kernel is compiled, which prints how far it is; the end waits for it unless the work failed."""
    if _has_code():
        yield
        return
    process = subprocess.Popen([sys.executable, "-m", _PROGRAM])  # noqa: S603 - a module of this package
    try:
        yield
        process.wait()
    finally:
        process.terminate()
        process.wait()


def _has_code() -> bool:
    """Whether there is machine code, of whatever sources: a service that can't use it compiles it again."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    installed = Path(__file__).with_name("kernel") / "__pycache__"
    return any(installed.glob(_CODE)) or (elsewhere is not None and any(Path(elsewhere).glob(f"*/{_CODE}")))
