"""What a report queue raises instead of a false acceptance (Q4)."""

from enum import StrEnum


class Reason(StrEnum):
    """Why no report can be kept, in words that /ready may say: no path, no host, no text of a library (O1)."""

    NO_ANSWER = "The report queue does not answer."
    FULL = "The disk of the report queue is full."
    READ_ONLY = "The file of the report queue can't be written: a read-only disk, or missing rights."
    FAILING = "The disk of the report queue fails."


class ReportsUnavailable(Exception):  # noqa: N818 - it names the state that callers are told of
    """The store did not confirm in time. The text is for the log, never for a caller (E5).

    Of an append it says that nothing is acknowledged, not that nothing was written: the same append may be tried again,
    and the dedup mark keeps it single.

    Attributes:
        reason: why, as far as that is known.
    """

    def __init__(self, text: str, reason: Reason = Reason.NO_ANSWER) -> None:
        self.reason = reason
        super().__init__(text)
