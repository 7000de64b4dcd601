"""Loads the compiled kernel from numba's cache; the installation compiles it once.

numba's cache is next to the source, or in NUMBA_CACHE_DIR if the process cannot write there, as in a read-only
container. That folder is empty at first, and compiling takes half a minute of processor time, so the code that the
installation compiled is copied there first.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

import numpy as np

from service.search.typeahead.kernel.arrays import ARRAYS, NOTHING, read_only
from service.search.typeahead.kernel.suggest import ANY_COUNTRY, suggest

# Where the installation has the code: numba's cache of modules in a writable folder.
_INSTALLED: Final = Path(__file__).with_name("kernel") / "__pycache__"
# The code comes before the index, because numba expects all code that an index lists.
_KINDS: Final = ("*.nbc", "*.nbi")
# The only function whose code numba caches, because only it is called from Python.
_ENTRY: Final[Any] = suggest
_LOG: Final = logging.getLogger(__name__)


def load_kernel() -> None:
    """Load the machine code from numba's cache or the installation, or compile it.

    numba ignores code of the installation for another processor or of another source.
    """
    cache = Path(_ENTRY.stats.cache_path)
    if cache != _INSTALLED and not any(cache.glob("*.nbi")):
        # If this fails, the code is compiled instead.
        with suppress(OSError):
            _copy(cache)
    if not any(cache.glob("*.nbi")):
        _LOG.info(
            "compiling the typeahead to machine code, which takes half a minute of processor time; until then searches "
            "and suggest requests are refused. python -m service.search.typeahead does it in advance, once for each "
            "installation"
        )
    compile_kernel()


def compile_kernel() -> None:
    """Compile the machine code in half a minute, or load it from numba's cache in a fifth of a second."""
    items, longs = read_only(np.zeros(2, np.int32)), read_only(np.zeros(1, np.int64))
    extents = np.zeros(2 * len(ARRAYS), np.int64)
    # Only the types of the arguments matter. The texts are empty, so nothing is looked up.
    extents[2 * ARRAYS.index("own_heads") + 1] = 1
    suggest(items, longs, read_only(extents), longs[:0], NOTHING, NOTHING, 0, NOTHING, NOTHING, 1, ANY_COUNTRY, 0)


def _copy(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    for kind in _KINDS:
        for path in _INSTALLED.glob(kind):
            # Several processes may start at the same time, so each file is renamed once it is complete.
            partial = cache / f"{path.name}.{os.getpid()}.new"
            copyfile(path, partial)
            partial.replace(cache / path.name)
