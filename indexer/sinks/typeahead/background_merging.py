"""A process of low priority merges segments into one in the background, while commits continue.

The process writes the merged segment into the folder and reports it. It changes nothing else, so if it is killed, its
files are removed as unneeded. A later commit adopts the result (`editor`).
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from index_mappings.typeahead.manifest import MAX_SEGMENTS, Covering, SegmentUse, TypeaheadManifest
from index_mappings.typeahead.segment import segment_path
from indexer.sinks.typeahead.merging import Input, merge
from indexer.sinks.typeahead.segment_file import open_segment

# The oldest segment is merged as well when more than one in so many of its shops are removed or newer elsewhere.
_BASE_PART: Final = 4
_NICENESS: Final = 19
_END_S: Final = 5.0
# The process must import the same code as this one, whatever its working directory.
_ROOT: Final = str(Path(__file__).parents[3])
_LOG: Final = logging.getLogger(__name__)


class BackgroundMerging:
    """Runs the background merges of one sink, one at a time; `close` ends the current one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._directory = Path()
        self._inputs: Covering = ()

    @property
    def process_id(self) -> int | None:
        """The process of the current merge, until its result is fetched."""
        return None if self._process is None else self._process.pid

    def start(self, directory: Path, inputs: Covering) -> None:
        """Start merging segments of a folder, unless a merge is running."""
        if self._process is not None or not inputs:
            return
        job = TypeaheadManifest((inputs,)).to_bytes()
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        command = [sys.executable, "-P", "-m", __name__, str(directory), sha256(job).hexdigest()]
        with TemporaryFile() as file:
            file.write(job)
            file.seek(0)
            try:
                # In its own group, so that an interrupt of the terminal reaches only this process. In its own session
                # the niceness would have no effect where the system divides the processor among sessions.
                self._process = subprocess.Popen(  # noqa: S603 - constants and a folder
                    command,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    process_group=0,
                )
            except OSError as error:
                _LOG.warning("segments of the typeahead can't be merged: %s", error)
                return
        self._directory, self._inputs = directory, inputs

    def finished(self, directory: Path) -> tuple[Covering, SegmentUse] | None:
        """The merge that has finished since the last call; None if there is none, or its folder is another one.

        Returns the merged segments, as they were at the start, and the segment of their shops.
        """
        process = self._process
        if process is None or process.poll() is None:
            return None
        answer, _ = process.communicate()
        self._process = None
        if process.returncode:
            _LOG.warning("merging segments of the typeahead ended with code %d and is retried", process.returncode)
            return None
        return (self._inputs, SegmentUse(*json.loads(answer))) if directory == self._directory else None

    def close(self) -> None:
        """Terminate the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def mergeable(covering: Covering, small_shops: int) -> Covering:
    """The consecutive segments of a manifest's only covering that should be merged into one; empty if none should.

    Commits rewrite the last segment while it has fewer than `small_shops` shops.
    """
    # With the maximum number of segments, commits rewrite the last one although it is large.
    is_settled = covering[-1].shops >= small_shops and len(covering) < MAX_SEGMENTS
    settled = covering if is_settled else covering[:-1]
    if not settled:
        return ()
    base, newer = settled[0], settled[1:]
    elsewhere = _removed(base) + sum(use.shops - _removed(use) for use in newer)
    if elsewhere * _BASE_PART > base.shops:
        return settled
    return newer if len(newer) > 1 else ()


def _removed(use: SegmentUse) -> int:
    return int.from_bytes(use.removed, "little").bit_count()


def main(arguments: Sequence[str]) -> None:
    """Merge the segments of the manifest that is read from standard input, and print the result as JSON.

    The arguments are the folder of the segments, and the manifest's name.
    """
    os.nice(_NICENESS)
    directory, name = Path(arguments[0]), arguments[1]
    (inputs,) = TypeaheadManifest.from_bytes(sys.stdin.buffer.read(), name).coverings
    result = merge(directory, [Input(open_segment(segment_path(directory, use.name)), use.removed) for use in inputs])
    sys.stdout.write(json.dumps([result.name, result.size, result.shops]))


if __name__ == "__main__":
    main(sys.argv[1:])
