"""The machine code's functions as plain Python, which tells of a place outside an array and can be watched."""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import numba
import pytest

from service.search import typeahead, typeahead_kernel

_WITHIN = f"{typeahead_kernel.__name__}."


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, ModuleType]:
    """The kernel's modules without compiling, by their names; whoever asks in this test asks them."""
    compiled = {name: module for name, module in sys.modules.items() if name.startswith(_WITHIN)}
    with monkeypatch.context() as uncompiled:
        uncompiled.setattr(numba.config, "DISABLE_JIT", 1)
        for name, module in compiled.items():
            uncompiled.delitem(sys.modules, name)
            # An import sets it, and it is set back with all else.
            uncompiled.setattr(typeahead_kernel, name.removeprefix(_WITHIN), module)
        modules = {name.removeprefix(_WITHIN): import_module(name) for name in compiled}
    monkeypatch.setattr(typeahead, "suggest", modules["key_press"].suggest)
    return modules
