"""The errors of sinks."""


class SinkError(Exception):
    """The engine failed; the live generation is unchanged, unless a method says otherwise."""


class IndexLostError(SinkError):
    """An index is gone, or a shard has no copy left: documents that were written are lost."""


class TypeaheadDamagedError(SinkError):
    """A file of the typeahead is missing or damaged."""
