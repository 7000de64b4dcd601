"""The embedded engine both ways in which it answers key presses: by its sorted texts, and by its index alone."""

from pathlib import Path

from index_mappings.generations import Stamp
from service.search.embedded import EmbeddedBackend, TantivyEngine
from service.search.embedded_typeahead import Typeaheads
from service.search.guarded import GuardedEngine
from service.search.typeahead import Typeahead


class IndexOnly(Typeaheads):
    """What has nothing open, ever."""

    def of(self, stamp: Stamp) -> Typeahead | None:  # noqa: ARG002 - whichever it is
        """Nothing."""
        return None


def engine_of(backend: EmbeddedBackend) -> TantivyEngine:
    """The engine behind its guard."""
    guard = backend._engine
    assert isinstance(guard, GuardedEngine)
    engine = guard._engine
    assert isinstance(engine, TantivyEngine)
    return engine


def by_texts(engine: TantivyEngine, stamp: Stamp) -> TantivyEngine:
    """The engine with the stamp's texts open."""
    assert engine._typeaheads.opened(stamp) is not None
    return engine


def by_index(engine: TantivyEngine, root: Path) -> TantivyEngine:
    """The engine without any."""
    engine._typeaheads = IndexOnly(root)
    return engine
