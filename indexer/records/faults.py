"""The faults of one record, before it is known where it is."""

# A field's path, None for the record as a whole, and the problem.
FieldFault = tuple[str | None, str]


class UnreadableError(Exception):
    """A cell of a sheet that can't be read: what would be valid, and the texts in it that are not."""

    def __init__(self, reason: str, *values: str) -> None:
        super().__init__(reason)
        self.reason, self.values = reason, values


class RefusedRecordError(Exception):
    """A line or a row that is not a valid record, or not a change that can be applied."""

    def __init__(self, *faults: FieldFault) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults

    @property
    def messages(self) -> tuple[str, ...]:
        """The faults as texts."""
        return tuple(f"{field} {reason}" if field else reason for field, reason in self.faults)
