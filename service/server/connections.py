"""How many connections a process keeps, in all and of one address, and which are closed for new ones.

A new connection beyond a bound takes the place of the one that has waited longest for a request: of the same address
where that address has too many, else of all. Where all are being answered the new one is refused. Trusted proxies speak
for many callers, so the bound of an address is not theirs.
"""

import logging
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.limits.policy import address_group
from service.runtime.addresses import Proxies, is_trusted_peer
from service.settings.server import MOST_CONNECTIONS, MOST_OF_AN_ADDRESS

# Files of the index, databases, connections to engines and stores.
_RESERVED_DESCRIPTORS: Final = 256
# Where the system sets no limit at all.
_MOST_DESCRIPTORS: Final = 1_048_576
# Refused connections that are still open, so that their callers can read why.
_MOST_REFUSED: Final = 64
_LOG_EVERY_SECONDS: Final = 10.0
_NOBODY: Final = Proxies()
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """The bounds of one process.

    Attributes:
        most: connections in all.
        of_an_address: connections of one address (IPv6: of one /64).
        trusted: proxies whose connections count in all only.
    """

    most: int = MOST_CONNECTIONS
    of_an_address: int = MOST_OF_AN_ADDRESS
    trusted: Proxies = _NOBODY


def bounds_within(descriptors: int, wanted: ConnectionBounds) -> ConnectionBounds:
    """The bounds that so many file descriptors allow; no address may have more than half of all connections."""
    most = min(wanted.most, max(descriptors - _RESERVED_DESCRIPTORS, descriptors // 2))
    return ConnectionBounds(most, min(wanted.of_an_address, max(1, most // 2)), wanted.trusted)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of file descriptors to the hard one; returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY:
        return _MOST_DESCRIPTORS
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:
            _LOG.warning("the limit of file descriptors stays at %d: %s", soft, type(error).__name__)
        else:
            soft = wanted
    return soft


class _Address:
    """The connections of one address."""

    __slots__ = ("name", "open", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = 0
        self.waiting: OrderedDict[Connection, None] = OrderedDict()


class Connection:
    """One connection in the table."""

    __slots__ = ("address", "close", "open")

    def __init__(self, close: Callable[[], object], address: _Address | None) -> None:
        self.close = close
        self.address = address
        self.open = True


class ConnectionTable:
    """The connections of one process."""

    def __init__(self, bounds: ConnectionBounds, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none.

        Args:
            bounds: of this process.
            clock: seconds that never go back.
        """
        self._bounds = bounds
        self._clock = clock
        self._open = 0
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        self._addresses: dict[str, _Address] = {}
        self._refused = 0
        self._log_at = float("-inf")

    def add(self, peer: str | None, close: Callable[[], object]) -> Connection | None:
        """Add a connection that waits for its first request; another one may be closed for it.

        Args:
            peer: the address at the other end; None or blank for a Unix socket.
            close: closes it, as it waits for a request.

        Returns:
            None when there is no room.
        """
        address = self._address_of(peer)
        if address is not None and address.open >= self._bounds.of_an_address:
            bound, candidates = "of one address", address.waiting
        elif self._open >= self._bounds.most:
            bound, candidates = "of all", self._waiting
        else:
            bound, candidates = "", None
        if candidates is not None:
            self._log(bound)
            if not candidates:
                return None
            oldest = next(iter(candidates))
            self.remove(oldest)
            oldest.close()
        connection = Connection(close, address)
        self._open += 1
        if address is not None:
            # It was forgotten, if what was closed was its last connection.
            self._addresses[address.name] = address
            address.open += 1
        self.waits(connection)
        return connection

    def waits(self, connection: Connection) -> None:
        """It waits for a request from now on."""
        if not connection.open:
            return
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)
        if connection.address is not None:
            connection.address.waiting[connection] = None
            connection.address.waiting.move_to_end(connection)

    def works(self, connection: Connection) -> None:
        """It has a request that is not answered."""
        self._waiting.pop(connection, None)
        if connection.address is not None:
            connection.address.waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """It is closed; more than once changes nothing."""
        if not connection.open:
            return
        connection.open = False
        self.works(connection)
        self._open -= 1
        if (address := connection.address) is not None:
            address.open -= 1
            if not address.open:
                self._addresses.pop(address.name, None)

    def refuse(self) -> bool:
        """Whether a refused connection may stay open until its caller has read why; then `forget_refused` ends that."""
        if self._refused >= _MOST_REFUSED:
            return False
        self._refused += 1
        return True

    def forget_refused(self) -> None:
        """A refused connection is closed."""
        self._refused -= 1

    def _address_of(self, peer: str | None) -> _Address | None:
        if not peer or is_trusted_peer(peer, self._bounds.trusted):
            return None
        name = address_group(peer)
        return self._addresses.get(name) or _Address(name)

    def _log(self, bound: str) -> None:
        # Never the address, and not for each: it would be the attacker who writes the log.
        if self._clock() >= self._log_at:
            self._log_at = self._clock() + _LOG_EVERY_SECONDS
            _LOG.warning("the bound of connections %s is reached: idle ones are closed for new ones", bound)
