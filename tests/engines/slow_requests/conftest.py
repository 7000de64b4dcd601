"""An index of shops that are hard on the typeahead, and among them what a hostile feed could state."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from bench.hostile import hostile_records, mixed_with_hostile
from indexer.sinks.embedded.sink import EmbeddedSink
from shop_directory.typeahead.compiled import compile_kernel
from tests.engines.typeahead.crowded import crowded
from tests.support.catalogues import build_into, write_catalogue_directory

# How many requests of each kind the long form asks.
FUZZED: Final = int(os.environ.get("SHOP_DIRECTORY_FUZZED_REQUESTS", "0"))
COUPONS: Final = 30_000 if FUZZED else 6_000
_SHOPS: Final = 100_000 if FUZZED else 1_000
_HOSTILE_EVERY: Final = 200 if FUZZED else 120


@dataclass(frozen=True)
class HostileIndex:
    """A catalogue, the lines of its shops, and the directory of its index."""

    catalogue: Path
    shops: Sequence[dict[str, Any]]
    directory: Path


@pytest.fixture(scope="package")
def hostile_index(tmp_path_factory: pytest.TempPathFactory) -> HostileIndex:
    folder = tmp_path_factory.mktemp("hostile")
    shops = list(mixed_with_hostile(({**line, "id": shop_id} for shop_id, line in crowded(_SHOPS)), _HOSTILE_EVERY))
    records = hostile_records(shops, COUPONS)
    catalogue = write_catalogue_directory(folder / "catalogue", shops=shops, **records)
    build_into(EmbeddedSink(folder / "index"), catalogue)
    compile_kernel()
    return HostileIndex(catalogue, shops, folder / "index")
