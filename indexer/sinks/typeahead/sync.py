"""Keeps the typeahead of a generation in step with the shops and categories that are written to it."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from index_mappings.typeahead.segment import Shown
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from indexer.sinks.protocol import GenerationReader
from indexer.sinks.typeahead.build import TypeaheadBuild, rebuild_typeahead
from indexer.sinks.typeahead.editor import SMALL_SHOPS, TypeaheadEditor
from indexer.sinks.typeahead.folding import Folding
from indexer.sinks.typeahead.store import TypeaheadStore

_LOG: Final = logging.getLogger(__name__)


class TypeaheadSync(TypeaheadEditor):
    """The typeahead of a sealed generation that is edited; only under the lease. Damaged files are written again."""

    def __init__(
        self,
        generation: GenerationReader,
        store: TypeaheadStore,
        manifest_name: str,
        folding: Folding | None,
        small_shops: int = SMALL_SHOPS,
    ) -> None:
        """Prepare; nothing is read yet. `generation` reads the documents from which the typeahead is rebuilt."""
        super().__init__(store, manifest_name, folding, small_shops)
        self._generation = generation

    def shown(self, after: str, end: str | None) -> dict[str, Shown]:
        """What suggestions show, as of `GenerationEditor.typeahead_shown`.

        Raises:
            TypeaheadDamagedError: a file is missing or damaged.
        """
        try:
            return super().shown(after, end)
        except (OSError, ValueError) as error:
            raise TypeaheadDamagedError(f"the typeahead cannot be read: {error}") from error

    def rebuild(self) -> None:
        """Write all files again from the stored documents; pending changes are committed on top of them.

        Raises:
            SinkError: the engine failed, or a file can't be written.
        """
        with typeahead_errors():
            self.restart(rebuild_typeahead(self._generation, self._store))

    def commit(self) -> str:
        """Write the changes, or all files again if one of them can't be read.

        Returns the name of the manifest that the stamp must name.

        Raises:
            SinkError: the engine failed, or a file can't be written.
        """
        with typeahead_errors():
            try:
                return super().commit()
            except (FileNotFoundError, ValueError) as error:
                # A shop that is under review now must not stay visible until somebody repairs the typeahead.
                _LOG.warning("the typeahead is built again from the index: %s", error)
                self.rebuild()
                return super().commit()


def with_typeahead(build: TypeaheadBuild, documents: Iterable[object]) -> Iterator[object]:
    """The same documents; shops and categories are added to the typeahead as they pass.

    Iterating raises SinkError if a file of the typeahead can't be written.
    """
    for document in documents:
        try:
            build.add(document)
        except (OSError, ValueError) as error:
            raise _not_written(error) from error
        yield document
    with typeahead_errors():
        build.end_shops()


@contextmanager
def typeahead_errors() -> Iterator[None]:
    """Raise errors of the local files of a typeahead as SinkError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _not_written(error) from error


def _not_written(error: Exception) -> SinkError:
    return SinkError(f"the typeahead could not be written: {error}")
