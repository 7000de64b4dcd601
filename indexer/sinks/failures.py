"""What a sink raises when the engine does not do what it was asked."""


class SinkError(Exception):
    """The engine did not do what it was asked; the live generation is untouched, unless a method says otherwise."""


class IndexLostError(SinkError):
    """An index is gone, or a part of it has no copy left: what was written to it is lost."""


class TypeaheadDamagedError(SinkError):
    """A file of the typeahead is missing, or not what its name says."""
