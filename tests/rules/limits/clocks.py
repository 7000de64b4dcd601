"""A clock that a test sets."""


class HandClock:
    """Seconds that pass only when a test says so; whole milliseconds, so that nothing is lost by rounding."""

    def __init__(self, milliseconds: int = 1_700_000_000_000) -> None:
        self._milliseconds = milliseconds

    def __call__(self) -> float:
        return self._milliseconds / 1000

    @property
    def milliseconds(self) -> int:
        return self._milliseconds

    def pass_seconds(self, seconds: float) -> None:
        self._milliseconds += round(seconds * 1000)
