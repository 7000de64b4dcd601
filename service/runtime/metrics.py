"""What is measured of the service while it runs: the words in which its parts tell it, whoever counts.

Every label is one of a few words that the code knows; never a query, a shop, a token or an address.
"""

from typing import Final, Protocol


class Metrics(Protocol):
    """Counts and times; no method raises or waits."""

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """A call was answered, or some of one route with one outcome.

        Args:
            route: a tool's name, `suggest`, `mcp` (a message that calls no tool), a probe's name, or `none`.
            outcome: `ok`, the code of a problem, or `left` when the caller did not wait.
            seconds: from the request's head to the answer's end, of each call.
        """

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """The search engine was asked.

        Args:
            operation: `stamp`, `search`, `every` or `present`.
            outcome: `ok`, `gone` (the generation), `unavailable`, or `refused` by an open circuit.
            seconds: until it answered.
        """

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """A store was asked: `tokens`, `limiter` or `reports`; outcome `ok` or `unavailable`."""

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """A cache was looked into so many times: `stamp`, `tokens`, `etag` or `suggest`."""

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """A quota was decided: `allowed`, `refused`, or `local` when counted without the shared limiter (Q4)."""

    def circuit(self, part: str, state: str) -> None:
        """A circuit breaker changed: `closed`, `open` or `half_open`."""

    def under_way(self, change: int) -> None:
        """So many requests more (or fewer) are being worked on."""

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """A file of a typeahead was fetched, or could not be.

        Args:
            outcome: `ok` or `unavailable`.
            size: its bytes; 0 where it could not be fetched.
            seconds: that it took.
        """

    def typeahead_folder(self, files: int, size: int) -> None:
        """So many files with so many bytes together are in the folder of this machine."""

    def typeahead_open(self, segments: int, size: int) -> None:
        """Suggest requests are answered from so many segments with so many bytes together."""

    def index_checked(self, size: int) -> None:
        """So many bytes of the embedded index were read again while serving."""

    def index_damaged(self, scopes: int) -> None:
        """So many generations, or typeaheads of one, are not answered from, as a file of theirs is damaged."""


class NoMetrics:
    """Metrics that nobody reads: stdio, tests, commands."""

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """Not kept."""

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """Not kept."""

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """Not kept."""

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """Not kept."""

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """Not kept."""

    def circuit(self, part: str, state: str) -> None:
        """Not kept."""

    def under_way(self, change: int) -> None:
        """Not kept."""

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """Not kept."""

    def typeahead_folder(self, files: int, size: int) -> None:
        """Not kept."""

    def typeahead_open(self, segments: int, size: int) -> None:
        """Not kept."""

    def index_checked(self, size: int) -> None:
        """Not kept."""

    def index_damaged(self, scopes: int) -> None:
        """Not kept."""


NOTHING_MEASURED: Final = NoMetrics()
