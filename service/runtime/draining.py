"""Whether this process is on its way out: it still answers, but is not ready, and lets no connection live on.

Between the signal and the end lies a time in which whoever balances load looks elsewhere; so nothing is cut.
"""


class Draining:
    """Set once, by the server; read by everybody."""

    def __init__(self) -> None:
        self.begun = False

    def begin(self) -> None:
        """From now on this process only finishes."""
        self.begun = True
