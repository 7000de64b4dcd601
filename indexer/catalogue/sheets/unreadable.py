"""A cell that can't be read."""


class UnreadableError(Exception):
    """A cell that can't be read: what would be valid, and the texts in it that are not."""

    def __init__(self, reason: str, *values: str) -> None:
        super().__init__(reason)
        self.reason, self.values = reason, values
