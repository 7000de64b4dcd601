"""How a rule can fail to hold or fail to be judged: a finding, and the exceptions that end the check of one rule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """How a rule was broken, as texts of bounded length.

    Attributes:
        request: the request, without credentials.
        expected: what the rule demands.
        actual: what the response had instead.
    """

    request: str
    expected: str
    actual: str


class RuleBrokenError(Exception):
    """The response is not what the rule demands."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.expected)


class TooLongError(RuleBrokenError):
    """The response is longer than a run reads."""


class NothingToSeeError(Exception):
    """The catalogue holds nothing that could break the rule; the text names what is missing."""


class NotAskedError(Exception):
    """The check of the rule could not be finished: the run has used up its requests, its time or the quota."""
