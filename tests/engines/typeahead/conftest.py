"""The kernel's functions as plain Python, which raises for a position outside an array and can be watched."""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import numba
import pytest

from shop_directory.typeahead import kernel
from shop_directory.typeahead.reading import segments

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
    monkeypatch.setattr(segments, "suggest", modules["suggest"].suggest)
    return modules
