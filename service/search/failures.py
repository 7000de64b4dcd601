"""What a search backend raises instead of an incomplete answer (E3)."""


class BackendUnavailable(Exception):  # noqa: N818 - it names the state that callers are told of
    """The engine did not answer, not wholly, or not in time. The text is for the log, never for a caller (E5)."""


class GenerationGone(BackendUnavailable):
    """The generation that was asked has been removed: ask what is live now, and try once more (C2)."""


class TypeaheadUnavailable(BackendUnavailable):
    """The files of a typeahead could not be had. The text is for operators: no paths or addresses, no last period."""


class NotReadable(BackendUnavailable):
    """The engine answers, but not with a generation that this service reads (G4)."""


class GenerationDamaged(BackendUnavailable):
    """A file of the live generation is not what was written. The text names it, for operators; no last period."""


class NothingPublished(NotReadable):
    """There is no live generation yet."""


class OtherSchema(NotReadable):
    """What is live was built by the code of another schema version."""
