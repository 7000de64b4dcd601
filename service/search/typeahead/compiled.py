"""The compiled kernel, made once at installation and used from wherever numba caches.

numba caches alongside the source, or in the folder of NUMBA_CACHE_DIR where a process cannot write there, as in a
read-only container. Such a folder begins empty, and compiling takes half a minute of a processor. So what the
installation compiled is copied there first.
"""

import os
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

from service.search.typeahead.kernel.suggest import suggest
from service.search.typeahead.segments import compile_kernel

# Where numba caches the code of modules in a folder that it can write to.
_INSTALLED: Final = Path(__file__).with_name("kernel") / "__pycache__"
# The code first: numba takes an index for granted once it is there.
_KINDS: Final = ("*.nbc", "*.nbi")
# The function that is called from Python, of which alone numba caches code.
_ENTRY: Final[Any] = suggest


def load_kernel(installed: Path = _INSTALLED) -> None:
    """Make the machine code available: from numba's cache, from the installation, or by compiling it.

    Args:
        installed: the folder in which the installation has it. Code for another processor, or of another source, is not
            used by numba.
    """
    cache = Path(_ENTRY.stats.cache_path)
    if cache != installed and not any(cache.glob("*.nbi")):
        # Whatever fails here, the code can still be compiled.
        with suppress(OSError):
            _copy(installed, cache)
    compile_kernel()


def _copy(installed: Path, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    for kind in _KINDS:
        for path in installed.glob(kind):
            # Several processes may start at the same time: a file is there whole or not at all.
            fresh = cache / f"{path.name}.{os.getpid()}.new"
            copyfile(path, fresh)
            fresh.replace(cache / path.name)
