"""Opens what the embedded engine keeps for key presses beside its index, in the background.

All tiers of M9 but 4, and but two typing errors, take a fraction of the time there that the index needs for them. Until
the files of a stamp are open, and where there are none, a damaged one, or no machine code, the index is asked for these
as well; it says the same.
"""

import json
import logging
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from index_mappings.typeahead import Moment, moment_path, texts_path, typeahead_directory

if TYPE_CHECKING:
    # It brings numpy and numba, which take a while to come.
    from service.search.typeahead import TextsFile, Typeahead

# Stamps whose files stay open, as their readers do.
_KEPT: Final = 3
_LOG: Final = logging.getLogger(__name__)


class Typeaheads:
    """The typeaheads of an index directory."""

    def __init__(self, root: Path) -> None:
        """Name the directory; nothing is opened yet."""
        self._root = root
        self._lock = Lock()
        # None where it is being opened, or can't be.
        self._of: dict[tuple[str, int], Typeahead | None] = {}
        self._opening: dict[tuple[str, int], Thread] = {}
        self._base: tuple[Path, TextsFile] | None = None

    def of(self, stamp: Stamp) -> "Typeahead | None":
        """The typeahead of a stamp; None where there is none yet, or none at all. The first to ask has it opened."""
        try:
            return self._of[stamp.key]
        except KeyError:
            self._open_soon(stamp)
            return None

    def opened(self, stamp: Stamp) -> "Typeahead | None":
        """The same, waited for."""
        self.of(stamp)
        if (opening := self._opening.get(stamp.key)) is not None:
            opening.join()
        return self.of(stamp)

    def _open_soon(self, stamp: Stamp) -> None:
        with self._lock:
            if stamp.key in self._of:
                return
            self._of[stamp.key] = None
            for old in list(self._of)[:-_KEPT]:
                del self._of[old]
                self._opening.pop(old, None)
            # A process that ends does not wait for it: it writes nothing that anybody would miss.
            opening = Thread(target=self._open, args=(stamp,), name="typeahead", daemon=True)
            self._opening[stamp.key] = opening
        opening.start()

    def _open(self, stamp: Stamp) -> None:
        directory = typeahead_directory(generation_directory(self._root, stamp.generation))
        try:
            moment = Moment.from_wire(json.loads(moment_path(directory, stamp.sequence).read_text(encoding="utf-8")))
            opened = self._put_together(directory, moment)
        except FileNotFoundError:
            # A generation that was built before there were any, or a stamp that is no longer the newest.
            _LOG.info("no typeahead belongs to sequence %d of %s", stamp.sequence, stamp.generation)
        except Exception:  # noqa: BLE001 - whatever it is, it must not end key presses, which the index can answer
            _LOG.exception("the typeahead of sequence %d of %s cannot be used", stamp.sequence, stamp.generation)
        else:
            with self._lock:
                if stamp.key in self._of:
                    self._of[stamp.key] = opened

    def _put_together(self, directory: Path, moment: Moment) -> "Typeahead":
        from service.search.typeahead import TextsFile, Typeahead, ready  # noqa: PLC0415 - see above

        ready()
        path = texts_path(directory, moment.base)
        kept = self._base
        base = kept[1] if kept is not None and kept[0] == path else TextsFile(path)
        self._base = path, base
        changes = None if moment.changes is None else TextsFile(texts_path(directory, moment.changes))
        return Typeahead(base, changes)
