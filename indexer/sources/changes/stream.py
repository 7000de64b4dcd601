"""Changes from standard input or another pipe, taken as they come.

A bounded queue of blocks stands between: when it is full the producer waits, and memory does not grow.
"""

import os
import queue
import select
import threading
from typing import BinaryIO, Final

from indexer.records.problems import CatalogueError
from indexer.sources.changes.records import gather
from indexer.sources.lines import LineCutter
from indexer.sources.protocol import ChangeBatch

_BLOCK: Final = 64 * 1024
_BLOCKS: Final = 64


class ChangeStream:
    """A stream of changes, which knows no place to go on from: what was read is read.

    Its descriptor is read by a thread of its own, from where it stands; bytes that the caller's buffer took before are
    not seen. A last line without its line feed is a line.

    Args:
        stream: with a file descriptor; the caller closes it.
        name: what reports call it.
        lenient: pass over unknown fields.
    """

    kind: Final = "stdin"

    def __init__(self, stream: BinaryIO, name: str, *, lenient: bool = False) -> None:
        self._name = name
        self._lenient = lenient
        self._cutter = LineCutter()
        self._blocks: queue.Queue[bytes | OSError] = queue.Queue(_BLOCKS)
        self._eof = False
        self._failure: OSError | None = None
        # A descriptor of its own: a thread that holds the lock of sys.stdin would break the interpreter's end.
        self._descriptor = os.dup(stream.fileno())
        self._woken, self._wake = os.pipe()
        self._reader = threading.Thread(target=self._fill, name=f"changes of {name}", daemon=True)
        self._reader.start()

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    @property
    def ended(self) -> bool:
        """Whether the stream was closed and everything of it was read."""
        return self._eof and not self._cutter.more

    def read(self, position: str | None, most: int) -> ChangeBatch:  # noqa: ARG002 - a stream has no positions
        """The changes that are there.

        Raises:
            CatalogueError: the stream broke; all changes before were given.
        """
        changes, refused = gather(self._cutter, self._pull, self._name, most, lenient=self._lenient)
        while not self._cutter.more and self._pull():
            pass
        if self._failure is not None and not (changes or refused or self._cutter.more):
            raise CatalogueError(f"{self._name} cannot be read: {self._failure.strerror}") from self._failure
        return ChangeBatch(changes, refused, None, self._cutter.more)

    def whereabouts(self, position: str | None) -> str | None:  # noqa: ARG002 - a stream has no positions
        """None: it knows no places."""
        return None

    def waiting(self, position: str | None) -> int | None:  # noqa: ARG002 - a stream has no positions
        """None: what stands in the pipe is not counted."""
        return None

    def close(self) -> None:
        """End the thread and let go of the descriptor; what was not read is lost. A second call does nothing."""
        if self._wake < 0:
            return
        os.close(self._wake)
        self._wake = -1
        while not self._blocks.empty():
            self._blocks.get_nowait()
        self._reader.join()
        os.close(self._descriptor)
        os.close(self._woken)

    def _pull(self) -> bool:
        """Hand a block that is there to the cutter; whether there was one."""
        try:
            block = self._blocks.get_nowait()
        except queue.Empty:
            return False
        if isinstance(block, OSError):
            self._failure = block
        elif block:
            self._cutter.feed(block)
        else:
            self._eof = True
            self._cutter.end()
        return True

    def _fill(self) -> None:
        ready = select.poll()
        ready.register(self._descriptor, select.POLLIN)
        ready.register(self._woken, select.POLLIN)
        while self._woken not in dict(ready.poll()):
            try:
                block = os.read(self._descriptor, _BLOCK)
            except OSError as error:
                self._blocks.put(error)
                return
            self._blocks.put(block)
            if not block:
                return
