"""Freed memory is returned to the system."""

import ctypes
import os

import pytest

from bench.commands import memory_mib
from indexer.sinks.typeahead.build import return_freed_memory

_BLOCK_BYTES = 64 * 1024  # the C library has larger ones of the system, one by one
_BLOCKS = 2_000


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library cannot return memory")
def test_freed_memory_is_returned_although_a_later_block_is_in_use() -> None:
    blocks = [b"x" * (_BLOCK_BYTES + number % 2) for number in range(_BLOCKS)]
    del blocks[:-1]
    before, _ = memory_mib(os.getpid())
    return_freed_memory()
    after, _ = memory_mib(os.getpid())
    assert before - after > _BLOCKS * _BLOCK_BYTES / 2**20 * 0.9
    assert blocks[0].startswith(b"x")
