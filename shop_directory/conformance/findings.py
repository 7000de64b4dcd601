"""How a rule can fail to hold or fail to be judged: a finding, and the exceptions that end the check of one rule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """How a rule was broken, in plain words of bounded length.

    Attributes:
        asked: the request, without credentials.
        expected: what the rule demands.
        came: what was there instead.
    """

    asked: str
    expected: str
    came: str


class RuleBrokenError(Exception):
    """The service did not do what the rule demands."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.expected)


class TooLongError(RuleBrokenError):
    """The answer is longer than a run reads."""


class NothingToSeeError(Exception):
    """The catalogue has nothing on which the rule shows; the text says what would be needed."""


class NotAskedError(Exception):
    """The rule could not be asked to its end: the run has spent its requests or its time."""
