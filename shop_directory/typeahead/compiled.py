"""Loads the compiled kernel from numba's cache; one process of an installation compiles it, once.

numba's cache is next to the source, or in NUMBA_CACHE_DIR if the process cannot write there, as in a read-only
container. That folder is empty at first, so the code that the installation compiled is copied there first.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import copyfile
from threading import Event, Thread
from typing import Any, Final

import numpy as np

from shop_directory.typeahead.kernel.arrays import NOTHING, read_only
from shop_directory.typeahead.kernel.suggest import suggest

# Where the installation has the code: numba's cache of modules in a writable folder.
_INSTALLED: Final = Path(__file__).with_name("kernel") / "__pycache__"
# The code comes before the index, because numba expects all code that an index lists.
_KINDS: Final = ("*.nbc", "*.nbi")
# The only function whose code numba caches, because only it is called from Python.
_ENTRY: Final[Any] = suggest
_LOCK: Final = "compiling.lock"
# What compiling takes on a processor of 2.6 GHz.
_COMPILE_SECONDS: Final = 30
_REPORT_SECONDS: Final = 10.0
_LOG: Final = logging.getLogger(__name__)


def load_kernel() -> None:
    """Load the machine code from numba's cache or the installation, or compile it.

    One process of an installation compiles, and others that need the code wait for it.
    """
    if not is_compiled():
        with _one_at_a_time():
            if not is_compiled():
                # If this fails, the code is compiled instead.
                with suppress(OSError):
                    _copy()
            if not is_compiled():
                with _logged_progress():
                    compile_kernel()
    compile_kernel()


def is_compiled() -> bool:
    """Whether numba's cache has the machine code of these sources for this processor."""
    # numba has no public way to ask without compiling missing functions.
    cache = _ENTRY._cache  # noqa: SLF001
    key = cache._index_key(None, _ENTRY.targetctx.codegen())[1:]  # noqa: SLF001
    return any(cached[1:] == key for cached in cache._cache_file._load_index())  # noqa: SLF001


def compile_kernel() -> None:
    """Compile the machine code, or load it from numba's cache in a fifth of a second."""
    # Only the types of the arguments matter: no segment is searched.
    nothing = read_only(np.zeros(0, np.int64))
    suggest(nothing, nothing, NOTHING, 0, NOTHING, 1, 0)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait until no other process is within; where the lock can't be had, processes do the same work at once."""
    with ExitStack() as stack:
        with suppress(OSError):
            cache = Path(_ENTRY.stats.cache_path)
            cache.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((cache / _LOCK).open("wb")), fcntl.LOCK_EX)
        yield


@contextmanager
def _logged_progress() -> Iterator[None]:
    """Log that compiling begins, how far it is, and that it has ended."""
    _LOG.info(
        "compiling the typeahead to machine code, once for each installation: %d s of processor time; until then "
        "searches and suggest requests are refused",
        _COMPILE_SECONDS,
    )
    ended, began, began_at = Event(), time.process_time(), time.monotonic()

    def report() -> None:
        while not ended.wait(_REPORT_SECONDS):
            used = time.process_time() - began
            _LOG.info("compiling the typeahead: %.0f of about %d s of processor time", used, _COMPILE_SECONDS)

    reporting = Thread(target=report, daemon=True)
    reporting.start()
    try:
        yield
    finally:
        ended.set()
        reporting.join()
    _LOG.info("the typeahead is compiled, in %.0f s", time.monotonic() - began_at)


def _copy() -> None:
    """Copy the code of the installation into numba's cache."""
    cache = Path(_ENTRY.stats.cache_path)
    if cache == _INSTALLED:
        return
    for kind in _KINDS:
        for path in _INSTALLED.glob(kind):
            # A process that loads the code does not wait for the lock, so each file is renamed once it is complete.
            partial = cache / f"{path.name}.{os.getpid()}.new"
            copyfile(path, partial)
            partial.replace(cache / path.name)
