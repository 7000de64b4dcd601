"""The errors of sinks."""

from collections.abc import Iterator
from contextlib import contextmanager


class SinkError(Exception):
    """The engine failed; the live generation is unchanged, unless a method says otherwise."""


class IndexLostError(SinkError):
    """An index is gone, or a shard has no copy left: documents that were written are lost."""


class TypeaheadDamagedError(SinkError):
    """A file of the typeahead is missing or damaged."""


@contextmanager
def as_sink_error(failure: str) -> Iterator[None]:
    """Raise errors of files, and of the embedded engine, as SinkError, whose text begins with this one."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SinkError(f"{failure}: {error}") from error
