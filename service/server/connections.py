"""The connections of a process: their bounds, in total and per address, and the queue of their writes.

A new connection beyond a bound replaces the one that has been idle longest: of the same address where the bound per
address is reached, otherwise of all. Where none is idle, the new one is refused. A trusted proxy connects for many
callers, so the bound per address does not apply to it.
"""

import logging
import resource
import time
from asyncio import Transport, get_running_loop
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from uvicorn.protocols.http.flow_control import FlowControl

from service.limits.policy import address_group
from service.runtime.caller import Proxies, is_trusted_peer
from service.settings.service import DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS

# For files of the index, databases, and connections to engines and stores.
_RESERVED_DESCRIPTORS: Final = 256
# Used where the system sets no limit.
_MAX_DESCRIPTORS: Final = 1_048_576
# Refused connections that stay open for a short time, so that their clients can read the reason.
_MAX_REFUSED: Final = 64
_LOG_EVERY_SECONDS: Final = 10.0
# Bounds what waits to be written, and the share of one connection in a tick. Ordinary load stays far below.
_MAX_WAITING: Final = 64
# For a longer body, the cost of another write is small.
_MAX_WAITING_BYTES: Final = 64 * 1024
# Pipelined requests that all connections together may have parsed in an event-loop tick: below 1 ms, and fewer than the
# searches that a tick admits, so that one client's pipeline is not refused.
_PIPELINED_IN_TICK: Final = 16
_NO_PROXIES: Final = Proxies()
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """The bounds on one process's connections in total, and of an address (IPv6: /64) that is no trusted proxy."""

    total: int = DEFAULT_MAX_CONNECTIONS
    per_address: int = DEFAULT_MAX_CONNECTIONS_PER_ADDRESS
    trusted: Proxies = _NO_PROXIES


DEFAULT_BOUNDS: Final = ConnectionBounds()


def bounds_within(descriptors: int, wanted: ConnectionBounds) -> ConnectionBounds:
    """The wanted bounds as far as the file descriptors allow; an address may have at most half of all connections."""
    total = min(wanted.total, max(descriptors - _RESERVED_DESCRIPTORS, descriptors // 2))
    return ConnectionBounds(total, min(wanted.per_address, max(1, total // 2)), wanted.trusted)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of file descriptors to the hard limit, and return the limit that is in force then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY:
        return _MAX_DESCRIPTORS
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:
            _LOG.warning("the limit of file descriptors stays at %d: %s", soft, type(error).__name__)
        else:
            soft = wanted
    return soft


@dataclass(eq=False, slots=True)
class _Address:
    name: str
    open: int = 0
    # The longest idle first.
    idle: "OrderedDict[Connection, None]" = field(default_factory=OrderedDict)


@dataclass(eq=False, slots=True)
class Connection:
    """An entry of the table."""

    close: Callable[[], object]
    address: _Address | None
    open: bool = True


class ConnectionTable:
    """The connections of one process."""

    def __init__(self, bounds: ConnectionBounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        # Called with the number of open connections whenever it changes.
        self.on_change: Callable[[int], object] | None = None
        self._open = 0
        self._idle: OrderedDict[Connection, None] = OrderedDict()
        self._addresses: dict[str, _Address] = {}
        self._refused = 0
        self._next_log = float("-inf")
        self._pipelined_in_tick = 0

    def add(self, peer: str | None, close: Callable[[], object]) -> Connection | None:
        """Add an idle connection, for which another one may be closed; None if it must be refused.

        `peer` is None or blank for a Unix socket. `close` is called if the connection is closed for another one.
        """
        address = self._address_of(peer)
        if address is not None and address.open >= self._bounds.per_address:
            bound, candidates = "per address", address.idle
        elif self._open >= self._bounds.total:
            bound, candidates = "in total", self._idle
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
            # Closing the oldest connection may have removed the address.
            self._addresses[address.name] = address
            address.open += 1
        if self.on_change is not None:
            self.on_change(self._open)
        self.mark_idle(connection)
        return connection

    def mark_idle(self, connection: Connection) -> None:
        """Note that a connection waits for a request from now on."""
        if not connection.open:
            return
        self._idle[connection] = None
        self._idle.move_to_end(connection)
        if connection.address is not None:
            connection.address.idle[connection] = None
            connection.address.idle.move_to_end(connection)

    def mark_busy(self, connection: Connection) -> None:
        """Note that a connection has an unanswered request."""
        self._idle.pop(connection, None)
        if connection.address is not None:
            connection.address.idle.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection; idempotent."""
        if not connection.open:
            return
        connection.open = False
        self.mark_busy(connection)
        self._open -= 1
        if self.on_change is not None:
            self.on_change(self._open)
        if (address := connection.address) is not None:
            address.open -= 1
            if not address.open:
                self._addresses.pop(address.name, None)

    def admit_pipelined(self) -> bool:
        """Whether a connection that has had its turn in this event-loop tick may have another request parsed in it."""
        if not self._pipelined_in_tick:
            get_running_loop().call_soon(self._end_tick)
        self._pipelined_in_tick += 1
        return self._pipelined_in_tick <= _PIPELINED_IN_TICK

    def _end_tick(self) -> None:
        self._pipelined_in_tick = 0

    def reserve_refusal(self) -> bool:
        """Whether a refused connection may stay open for a short time; then `release_refusal` must follow."""
        if self._refused >= _MAX_REFUSED:
            return False
        self._refused += 1
        return True

    def release_refusal(self) -> None:
        """Note that a refused connection has closed."""
        self._refused -= 1

    def _address_of(self, peer: str | None) -> _Address | None:
        if not peer or is_trusted_peer(peer, self._bounds.trusted):
            return None
        name = address_group(peer)
        return self._addresses.get(name) or _Address(name)

    def _log(self, bound: str) -> None:
        # Without the address and at a bounded rate: an attacker must not be able to fill the log.
        if self._clock() >= self._next_log:
            self._next_log = self._clock() + _LOG_EVERY_SECONDS
            _LOG.warning("the bound on connections %s is reached: idle connections are closed for new ones", bound)


class TickWriter:
    """The writes of one event-loop tick, of all connections: made at its end, those to one connection as one.

    A write is a system call, which costs more than most responses, and it wakes the process that reads; a process that
    is awake already costs nothing.
    """

    def __init__(self, written: Callable[[], object] | None = None) -> None:
        """Start empty; `written` is called when all that waited is written, to count and log it."""
        self._written = written
        self._waiting: dict[Transport, list[bytes]] = {}
        self._count = self._bytes = 0

    def write(self, transport: Transport, data: bytes) -> None:
        """Write at the end of this tick, before any task that starts later runs, or when too much waits."""
        if not self._waiting:
            get_running_loop().call_soon(self.flush)
        self._waiting.setdefault(transport, []).append(data)
        self._count += 1
        self._bytes += len(data)
        if self._count >= _MAX_WAITING or self._bytes >= _MAX_WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits now: when a response is complete, or before a connection closes."""
        if not self._waiting:
            return
        waiting, self._waiting, self._count, self._bytes = self._waiting, {}, 0, 0
        for transport, parts in waiting.items():
            if transport.is_closing():
                continue
            try:
                transport.write(b"".join(parts))
            except (OSError, RuntimeError):
                # The answers of other connections wait behind this one.
                _LOG.exception("a connection cannot be written to: it is closed")
                transport.abort()
        if self._written is not None:
            self._written()


class TickTransport:
    """A connection as the server's library writes to it; the writes wait in the queue of the tick."""

    def __init__(self, transport: Transport, writer: TickWriter) -> None:
        self._transport = transport
        self._writer = writer
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write at the end of the tick."""
        self._writer.write(self._transport, data)

    def close(self) -> None:
        """Write what waits, and close the connection."""
        self._writer.flush()
        self._transport.close()


class ReadControl(FlowControl):
    """Pauses reading for two reasons, which end independently: a long body, and input that waits to be parsed."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._held = False

    def pause_reading(self) -> None:
        """Read nothing until the request's body is taken."""
        self._set(paused=True, held=self._held)

    def resume_reading(self) -> None:
        """Read more of a body."""
        self._set(paused=False, held=self._held)

    def hold(self) -> None:
        """Read nothing until `release`."""
        self._set(paused=self.read_paused, held=True)

    def release(self) -> None:
        """All input is parsed."""
        self._set(paused=self.read_paused, held=False)

    def _set(self, *, paused: bool, held: bool) -> None:
        was, becomes = self.read_paused or self._held, paused or held
        self.read_paused, self._held = paused, held
        if becomes and not was:
            self._transport.pause_reading()
        elif was and not becomes:
            self._transport.resume_reading()
