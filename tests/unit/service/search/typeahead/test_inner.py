"""Functions of the kernel that only compiled code calls."""

from typing import Any

from numba import njit

from service.search.typeahead.kernel.arrays import inner


@inner
def _twice(number: int) -> int:
    return 2 * number


@inner
def _four_times(number: int) -> int:
    return _twice(_twice(number))


def _outer(number: int) -> int:
    return _four_times(number) + _twice(number)


_from_python: Any = njit(_outer)


def test_inner_functions_are_linked_into_their_caller_and_make_no_code() -> None:
    assert _from_python(3) == 18
    for function, makes_code in ((_twice, False), (_four_times, False), (_from_python, True)):
        compiled: Any = function
        (result,) = compiled.overloads.values()
        engine = result.library._codegen._engine
        assert engine.is_symbol_defined(result.fndesc.llvm_func_name) is makes_code
