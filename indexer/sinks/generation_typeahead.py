"""The typeahead of a generation as a sink writes it, with the errors of a sink."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from indexer.sinks.failures import TypeaheadDamagedError, as_sink_error
from indexer.sinks.protocol import GenerationReader, scan
from shop_directory.typeahead.segment import Shown
from shop_directory.typeahead.writing.build import TypeaheadBuild, rebuild_typeahead
from shop_directory.typeahead.writing.editor import TypeaheadEditor
from shop_directory.typeahead.writing.merging import BackgroundMerging
from shop_directory.typeahead.writing.store import TypeaheadStore

# Bytes of the typeahead for each shop: 760 to 1,520 were measured, by the number of texts.
_SHOP_BYTES: Final = 1_600
# For errors of the local files of a typeahead.
_FAILURE: Final = "the typeahead could not be written"
# The shops of the two segments of a build that are merged at the same time, at the most.
_MERGED_SHOPS: Final = 32_000_000


def needed_space(shops: int) -> int:
    """How many bytes a build of a typeahead writes at the peak: all runs, and temporary files of two merged segments.

    A segment itself replaces these array by array, of which the largest, two fifths of all, is there twice.
    """
    return _SHOP_BYTES * (shops + 3 * min(shops, _MERGED_SHOPS) // 2)


def stored_documents(reader: GenerationReader) -> Callable[[str], Iterator[Mapping[str, Any]]]:
    """The stored parts of a generation's documents of a kind."""
    return lambda kind: (stored for _, stored in scan(reader, kind))


class SinkTypeaheadBuild(TypeaheadBuild):
    """A typeahead that is being built. Methods raise SinkError."""

    finish = as_sink_error(_FAILURE)(TypeaheadBuild.finish)
    _end_run = as_sink_error(_FAILURE)(TypeaheadBuild._end_run)  # noqa: SLF001 - of its base class


class SinkTypeaheadEditor(TypeaheadEditor):
    """Edits the typeahead of a sealed generation, under the lease; its documents repair it. Methods raise SinkError."""

    def __init__(
        self,
        reader: GenerationReader,
        store: TypeaheadStore,
        manifest_name: str,
        merging: BackgroundMerging | None = None,
    ) -> None:
        super().__init__(stored_documents(reader), store, manifest_name, merging)

    rebuild = as_sink_error(_FAILURE)(TypeaheadEditor.rebuild)
    commit = as_sink_error(_FAILURE)(TypeaheadEditor.commit)
    damaged = as_sink_error(_FAILURE)(TypeaheadEditor.damaged)

    def shown(self, after: str, end: str | None) -> dict[str, Shown]:
        """Read the files that have these shops."""
        try:
            return super().shown(after, end)
        except (OSError, ValueError) as error:
            raise TypeaheadDamagedError(f"the typeahead cannot be read: {error}") from error


@as_sink_error(_FAILURE)
def rebuilt(reader: GenerationReader, store: TypeaheadStore) -> str:
    """Write a generation's typeahead again from its documents; returns the manifest's name."""
    return rebuild_typeahead(stored_documents(reader), store)
