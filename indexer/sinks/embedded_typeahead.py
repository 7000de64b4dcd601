"""What key presses are answered from, kept with an embedded generation: written with it and kept up with its changes.

A file of all shops is written when a generation is built. Changes go into a second, small file, written anew with each
commit. When that is no longer small, the first is written anew from the index if that is soon done; otherwise the index
answers alone until the next build, as no change may wait so long to be seen. A moment's file comes last and names both,
so that a reader finds what belongs to its stamp, or nothing.
"""

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from index_mappings.documents import ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.typeahead import Moment, Shown, moment_path, texts_path, typeahead_directory
from indexer.sinks.embedded_files import write_whole
from indexer.sinks.typeahead_reading import Ids, Texts, read_shown
from indexer.sinks.typeahead_shop import Findable
from indexer.sinks.typeahead_texts import TextsBuild, write_texts

# So many moments may have readers.
_KEPT_MOMENTS: Final = 3
# The file of changes is small up to so many shops: written in a quarter of a second.
_FEW: Final = 5_000
# So many shops are written anew in a second or two.
_SOON_WRITTEN: Final = 20_000
_FIRST: Final = 1
_LOG: Final = logging.getLogger(__name__)


def built(root: Path, generation: str, shops: Iterable[ShopDocument]) -> Iterable[ShopDocument]:
    """Let documents through that are being written, and write the first file of them when all are through.

    Raises:
        OSError: it can't be written.
    """
    directory = typeahead_directory(generation_directory(root, generation))
    directory.mkdir()
    base = f"base-{_FIRST}"
    with TextsBuild(texts_path(directory, base)) as build:
        for shop in shops:
            build.add(Findable.of(shop))
            yield shop
        build.write()
    write_whole(moment_path(directory, _FIRST), json.dumps(Moment(base, None).as_wire()))


class TypeaheadEditor:
    """Keeps up with the changes of a sealed generation; only under the lease."""

    def __init__(
        self, root: Path, generation: str, count: Callable[[], int], everything: Callable[[], Iterable[Findable]]
    ) -> None:
        """Open.

        Args:
            root: of the index directory.
            generation: its name.
            count: how many shops the index has then, where all has to be written anew.
            everything: these.
        """
        self._directory = typeahead_directory(generation_directory(root, generation))
        self._count = count
        self._everything = everything
        self._changed: dict[str, Findable | None] = {}
        self._known: tuple[str, Ids] | None = None

    def put(self, shop: ShopDocument) -> None:
        """A shop was added or replaced."""
        self._changed[shop.id] = Findable.of(shop)

    def remove(self, shop_id: str) -> None:
        """A shop was removed, if it was there."""
        self._changed[shop_id] = None

    def commit(self, before: int, sequence: int) -> None:
        """Write what readers of a stamp need, before it is written.

        Args:
            before: the sequence of the stamp that is replaced.
            sequence: of the stamp to come.

        Raises:
            OSError, SinkError: it can't be written.
        """
        former = moment = self._moment(before)
        if moment is None:
            moment = self._anew(sequence)
        elif self._changed:
            moment = self._later(moment, sequence)
        if moment is not None:
            write_whole(moment_path(self._directory, sequence), json.dumps(moment.as_wire()))
        elif former is not None:
            # Once: the commits that follow have no former one.
            _LOG.warning("key presses are answered by the index alone, which is slower, until the next build")
        self._changed = {}
        self._tidy()

    def shown(self, sequence: int, after: str, end: str | None) -> dict[str, Shown] | None:
        """What key presses show of the shops after one id up to another.

        Args:
            sequence: of the stamp.
            after: an id, or nothing for the first.
            end: an id; None for all that follow.

        Returns:
            that by id; None where the index answers alone, as there are no files or damaged ones.
        """
        if (moment := self._moment(sequence)) is None:
            return None
        try:
            return read_shown(self._directory, moment, after, end)
        except (OSError, ValueError) as error:
            if not after:  # once for all pages
                _LOG.warning("key presses are answered by the index alone, which is slower: %s", error)
            return None

    def _moment(self, sequence: int) -> Moment | None:
        try:
            return Moment.from_wire(json.loads(moment_path(self._directory, sequence).read_text(encoding="utf-8")))
        except (OSError, ValueError, AttributeError):
            return None  # a generation of before, or a damaged file

    def _later(self, moment: Moment, sequence: int) -> Moment | None:
        """The same base, and all changes since in a new file; or as `_anew` where they are many."""
        try:
            ids, numbers = self._ids(moment.base)
            known = {} if moment.changes is None else _noted(Texts(texts_path(self._directory, moment.changes)).notes())
        except (OSError, ValueError):
            return self._anew(sequence)  # damaged
        changed = known | self._changed
        if len(changed) > _FEW:
            return self._anew(sequence)
        wanted = np.array(sorted(changed), dtype="S")
        places = np.searchsorted(ids, wanted)
        gone = [
            int(numbers[place])
            for place, shop_id in zip(places, wanted, strict=True)
            if place < len(ids) and ids[place] == shop_id
        ]
        name = f"changes-{sequence}"
        notes = orjson.dumps({shop_id: None if shop is None else tuple(shop) for shop_id, shop in changed.items()})
        shops = [shop for shop in changed.values() if shop is not None]
        write_texts(texts_path(self._directory, name), shops, gone, notes)
        return Moment(moment.base, name)

    def _ids(self, base: str) -> Ids:
        """The ids of a base and their numbers; of a large one it takes a while to look through it, once."""
        if self._known is None or self._known[0] != base:
            self._known = base, Texts(texts_path(self._directory, base)).ids()
        return self._known[1]

    def _anew(self, sequence: int) -> Moment | None:
        """All shops in a new base; None where they are too many for a commit to wait for."""
        if self._count() > _SOON_WRITTEN:
            return None
        base = f"base-{sequence}"
        self._directory.mkdir(exist_ok=True)
        write_texts(texts_path(self._directory, base), self._everything())
        return Moment(base, None)

    def _tidy(self) -> None:
        """Remove what no reader looks for any more; those who have a file open keep it."""
        moments = sorted((int(path.stem[3:]), path) for path in self._directory.glob("at-*.json"))
        kept = {moment for number, _ in moments[-_KEPT_MOMENTS:] if (moment := self._moment(number)) is not None}
        files = {name for moment in kept for name in moment if name is not None}
        others = [path for path in self._directory.glob("*.texts") if path.stem not in files]
        for path in (*(path for _, path in moments[:-_KEPT_MOMENTS]), *others):
            with suppress(OSError):
                path.unlink()


def _noted(notes: bytes) -> dict[str, Findable | None]:
    return {
        shop_id: None if found is None else Findable.of_wire(found) for shop_id, found in orjson.loads(notes).items()
    }
