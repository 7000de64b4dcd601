"""The machine code's functions as plain Python, which tells of a place outside an array and can be watched."""

import importlib.util
from types import ModuleType

import numba
import pytest

from service.search import typeahead, typeahead_kernel


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The kernel without compiling; whoever asks in this test asks it."""
    assert typeahead_kernel.__file__ is not None
    spec = importlib.util.spec_from_file_location("plain_typeahead_kernel", typeahead_kernel.__file__)
    assert spec is not None
    assert spec.loader is not None
    kernel = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as uncompiled:
        uncompiled.setattr(numba.config, "DISABLE_JIT", 1)
        spec.loader.exec_module(kernel)
    monkeypatch.setattr(typeahead, "suggest", kernel.suggest)
    return kernel
