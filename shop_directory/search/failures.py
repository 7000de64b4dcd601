"""The errors of search backends: an incomplete answer is always one of these (E3)."""


class BackendUnavailable(Exception):  # noqa: N818 - it names the state that callers see
    """The engine gave no complete answer in time. The text goes to the log, never to a caller (E5)."""


class GenerationGone(BackendUnavailable):
    """The requested generation was removed: look up the live one, and retry once (C2)."""


class TypeaheadNotOpen(BackendUnavailable):
    """The typeahead of the live generation is not open yet, or could not be opened: only shops can be looked up."""


class TypeaheadUnavailable(BackendUnavailable):
    """The files of a typeahead are unavailable. The text is for operators: no paths or addresses, no last period."""


class EngineBusy(Exception):  # noqa: N818 - it names the state that callers see
    """All threads of the engine are taken, or the caller's share of them; nothing was searched."""


class NotReadable(BackendUnavailable):
    """The engine answers, but has no generation that this service can read (G4)."""


class GenerationDamaged(BackendUnavailable):
    """A file of the live generation has been changed. The text names it, for operators; no last period."""


class NothingPublished(NotReadable):
    """There is no live generation yet."""


class OtherSchema(NotReadable):
    """The live generation has another schema version than this service."""
