"""Folding: segments are merged into one by a process of low priority, while commits go on.

The process writes the merged segment into the folder and reports it. It changes nothing else, so killing it leaves
files only that are tidied away. A later commit adopts the result (`editor`).
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
from typing import Final, NamedTuple

from index_mappings.typeahead.manifest import MOST_SEGMENTS, Covering, SegmentUse, TypeaheadManifest
from index_mappings.typeahead.segment import segment_path
from indexer.sinks.typeahead.merging import Input, merge
from indexer.sinks.typeahead.reading import open_segment

# The base is merged as well when so large a part of it is elsewhere or gone.
_BASE_PART: Final = 4
_NICENESS: Final = 19
_END_S: Final = 5.0
# What the process imports is what this one has, wherever it was started.
_ROOT: Final = str(Path(__file__).parents[3])
_LOG: Final = logging.getLogger(__name__)


class Fold(NamedTuple):
    """A finished fold.

    Attributes:
        inputs: the segments that were merged, as they were when it began.
        result: the segment of their shops.
    """

    inputs: Covering
    result: SegmentUse


class Folding:
    """The fold of one sink: one at a time, and none outlives it."""

    def __init__(self) -> None:
        """Begin without one."""
        self._process: subprocess.Popen[str] | None = None
        self._directory = Path()
        self._inputs: Covering = ()

    @property
    def process_id(self) -> int | None:
        """The process that folds, also when it has ended and nobody has asked for its result."""
        return None if self._process is None else self._process.pid

    def start(self, directory: Path, inputs: Covering) -> None:
        """Begin to merge segments of a folder, unless a fold is running."""
        if self._process is not None or not inputs:
            return
        job = TypeaheadManifest((inputs,)).to_bytes()
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        command = [sys.executable, "-P", "-m", __name__, str(directory), sha256(job).hexdigest()]
        with TemporaryFile() as file:
            file.write(job)
            file.seek(0)
            try:
                # In a session of its own, so that an interrupt of the terminal is for this process only.
                self._process = subprocess.Popen(  # noqa: S603 - fixed words and a folder
                    command,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
            except OSError as error:
                _LOG.warning("segments of the typeahead can't be folded: %s", error)
                return
        self._directory, self._inputs = directory, inputs

    def finished(self, directory: Path) -> Fold | None:
        """The fold of a folder that has finished since the last time; the one of another folder is dropped."""
        process = self._process
        if process is None or process.poll() is None:
            return None
        answer, _ = process.communicate()
        self._process = None
        if process.returncode:
            _LOG.warning("a fold of the typeahead ended with code %d and is tried again", process.returncode)
            return None
        return Fold(self._inputs, SegmentUse(*json.loads(answer))) if directory == self._directory else None

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def foldable(covering: Covering, small_shops: int) -> Covering:
    """The segments of a covering that should be merged into one, neighbours; none where that gains nothing.

    Args:
        covering: the only one of a manifest.
        small_shops: commits rewrite the last segment while it has fewer shops.
    """
    # Where there are as many as may be, the last one is rewritten although it is large.
    is_settled = covering[-1].shops >= small_shops and len(covering) < MOST_SEGMENTS
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
    """Merge the segments of the manifest that is read from standard input, and report the result as JSON.

    Args:
        arguments: the folder of the segments, and the manifest's name.
    """
    os.nice(_NICENESS)
    directory, name = Path(arguments[0]), arguments[1]
    (inputs,) = TypeaheadManifest.from_bytes(sys.stdin.buffer.read(), name).coverings
    result = merge(directory, [Input(open_segment(segment_path(directory, use.name)), use.removed) for use in inputs])
    sys.stdout.write(json.dumps([result.name, result.size, result.shops]))


if __name__ == "__main__":
    main(sys.argv[1:])
