"""What the embedded engine's binding raises, as the failure that callers know: the one place that translates (E3).

A panic of the engine comes as an exception that is no `Exception`, and would pass by everything that answers failures.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from service.search.failures import BackendUnavailable

P = ParamSpec("P")
T = TypeVar("T")

# Where the library that binds Rust code to Python defines its panics; the class itself cannot be imported.
_PANICS: Final = "pyo3_runtime"
_LOG: Final = logging.getLogger(__name__)


def translated(work: Callable[P, T]) -> Callable[P, T]:
    """The same work on the engine; whatever fails in it is raised as BackendUnavailable."""

    @wraps(work)
    def translating(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except BackendUnavailable:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__module__ != _PANICS:
                raise
            _LOG.exception("the embedded engine failed")
            raise BackendUnavailable("the embedded engine failed") from error

    return translating
