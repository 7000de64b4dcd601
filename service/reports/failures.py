"""What a report queue raises instead of a false acceptance (Q4)."""


class ReportsUnavailable(Exception):  # noqa: N818 - it names the state that callers are told of
    """The store did not confirm in time. The text is for the log, never for a caller (E5).

    Of an append it says that nothing is acknowledged, not that nothing was written: the same append may be tried again,
    and the dedup mark keeps it single.
    """
