"""The kernel's functions as plain Python, which raises for a position outside an array and can be watched."""

import ctypes
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from shop_directory.typeahead import kernel
from shop_directory.typeahead.reading import segments, typeahead

_WITHIN = f"{kernel.__name__}."


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, ModuleType]:
    """The kernel's modules without compiling, by their names; segments that are asked in this test ask them."""
    compiled = {name: module for name, module in sys.modules.items() if name.startswith(_WITHIN)}
    with monkeypatch.context() as uncompiled:
        uncompiled.setattr(numba.config, "DISABLE_JIT", 1)
        for name, module in compiled.items():
            uncompiled.delitem(sys.modules, name)
            # An import sets it, and it is set back with all else.
            uncompiled.setattr(kernel, name.removeprefix(_WITHIN), module)
        modules = {name.removeprefix(_WITHIN): import_module(name) for name in compiled}
    for kind, dtype in (("ints", np.int32), ("longs", np.int64), ("doubles", np.float64), ("bytes", np.uint8)):
        monkeypatch.setattr(modules["segments"], f"{kind}_at", partial(_array_at, np.dtype(dtype)))
    for reader in (segments, typeahead):
        monkeypatch.setattr(reader, "suggest", modules["suggest"].suggest)
    return modules


def _array_at(dtype: np.dtype[Any], table: np.ndarray[Any, Any], at: int) -> np.ndarray[Any, Any]:
    """The array whose address and size are at a position of a table, as compiled code reads it."""
    address, size = table[at : at + 2].tolist()
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address) if size else b""
    return np.frombuffer(memory, dtype)
