"""An OpenSearch node of a benchmark, with the settings that all of them share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.real.opensearch import OpenSearchNode, allocate_nodes
from tests.support.real.sources import Missing, find_local_nodes

# The garbage collector of the test nodes runs late, and the node would refuse requests for memory that is garbage.
_SETTINGS: Final = {"indices.breaker.total.use_real_memory": "false"}


class EngineMissingError(Exception):
    """No node can be started on this machine; the text has the reason."""


@contextmanager
def opensearch_node(folder: Path, heap: str, settings: Mapping[str, str] | None = None) -> Iterator[OpenSearchNode]:
    """A running node, which is stopped when the context ends; its data stay in the folder.

    `heap` is as `-Xmx` takes it; the settings are added to the usual ones.
    """
    found = find_local_nodes()
    if isinstance(found, Missing):
        raise EngineMissingError(f"no OpenSearch can be started: {found.reason}")
    (place,) = allocate_nodes(folder.resolve(), 1)
    more = {**_SETTINGS, **(settings or {})}
    with OpenSearchNode(found.build(), place, heap=heap, settings=more, quick_start=False) as node:
        yield node
