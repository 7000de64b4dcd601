"""Changes from standard input or another pipe.

A thread reads blocks into a bounded queue: while it is full, the producer blocks and memory does not grow.
"""

import os
import queue
import select
import threading
from typing import BinaryIO, Final

from indexer.records.problems import CatalogueError
from indexer.sources.changes.change_lines import gather
from indexer.sources.lines import LineCutter, warn_of_blank_lines
from indexer.sources.protocol import ChangeBatch

_BLOCK: Final = 64 * 1024
_BLOCKS: Final = 64


class ChangeStream:
    """A stream of changes without positions: nothing is read twice.

    A thread reads the descriptor itself; bytes that the caller's buffer already holds are not read. A last line without
    its line feed counts as a line. The caller closes the stream.
    """

    kind: Final = "stdin"

    def __init__(self, stream: BinaryIO, name: str, *, lenient: bool = False) -> None:
        self._name = name
        self._lenient = lenient
        self._cutter = LineCutter()
        self._blocks: queue.Queue[bytes | OSError] = queue.Queue(_BLOCKS)
        self._eof = False
        self._failure: OSError | None = None
        # A duplicate: a thread that holds the lock of sys.stdin would break the interpreter's shutdown.
        self._descriptor = os.dup(stream.fileno())
        self._stop_reader, self._stop_writer = os.pipe()
        self._reader = threading.Thread(target=self._fill, name=f"changes of {name}", daemon=True)
        self._reader.start()

    @property
    def ended(self) -> bool:
        """Whether the stream was closed and read to its end."""
        return self._eof and not self._cutter.more

    def read(self, position: str | None, limit: int) -> ChangeBatch:  # noqa: ARG002 - a stream has no positions
        """The changes that are available; a failure is raised as CatalogueError after all changes before it."""
        blank = self._cutter.blank
        changes, refused = gather(self._cutter, self._pull, self._name, limit, lenient=self._lenient)
        warn_of_blank_lines(self._name, blank, self._cutter.blank)
        while not self._cutter.more and self._pull():
            pass
        if self._failure is not None and not (changes or refused or self._cutter.more):
            raise CatalogueError(f"{self._name} cannot be read: {self._failure.strerror}") from self._failure
        return ChangeBatch(changes, refused, None, self._cutter.more)

    def describe_position(self, position: str | None) -> str | None:  # noqa: ARG002 - a stream has no positions
        """None: a stream has no positions."""
        return None

    def backlog(self, position: str | None) -> int | None:  # noqa: ARG002 - a stream has no positions
        """None: the changes in the pipe are not counted."""
        return None

    def close(self) -> None:
        """End the thread and close the descriptor; unread changes are lost. A second call does nothing."""
        if self._stop_writer < 0:
            return
        os.close(self._stop_writer)
        self._stop_writer = -1
        while not self._blocks.empty():
            self._blocks.get_nowait()
        self._reader.join()
        os.close(self._descriptor)
        os.close(self._stop_reader)

    def _pull(self) -> bool:
        """Feed an available block to the cutter; returns whether there was one."""
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
        ready.register(self._stop_reader, select.POLLIN)
        while self._stop_reader not in dict(ready.poll()):
            try:
                block = os.read(self._descriptor, _BLOCK)
            except OSError as error:
                self._blocks.put(error)
                return
            self._blocks.put(block)
            if not block:
                return
