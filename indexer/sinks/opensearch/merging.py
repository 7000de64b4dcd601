"""Merges the indices of a new generation to one segment each, as a search visits each segment.

A merge changes no answers, so one that fails or takes too long is logged and fails no build.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from opensearchpy import OpenSearch

from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.retries import retry_transient

# A million shops take minutes, as their build does.
MERGE_BOUND_S: Final = 600.0

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


def merge(
    client: OpenSearch, indices: Sequence[str], meanwhile: Callable[[], None], bound: float = MERGE_BOUND_S
) -> bool:
    """Merge, and wait for the end; readers see no change before the next refresh.

    The indices are of a generation that no other job writes to. `meanwhile` is called repeatedly, at least each half
    second while the cluster answers; its errors are raised. A merge that takes longer than `bound` seconds continues in
    the cluster, but is not waited for. Returns whether all indices were merged; if not, that is logged.
    """
    deadline = time.monotonic() + bound
    names = ",".join(indices)
    # After a flush, a merge drops the sources that the engine stores for the recovery of replicas: a third of an index.
    _logged(lambda: client.indices.flush(index=names), "the new generation could not be flushed before its merge")
    # New parameters for each attempt, as the client removes some of them.
    started = _logged(
        lambda: client.indices.forcemerge(index=names, params={"max_num_segments": 1, "wait_for_completion": "false"}),
        "the new generation could not be merged",
    )
    if started is None:
        return False
    task, pause = started["task"], _FIRST_PAUSE_S
    while time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
        meanwhile()
        found = _logged(lambda: client.tasks.get(task_id=task), "it is not known whether the new generation was merged")
        if found is None:
            return False
        if found["completed"]:
            return _is_whole(found)
    _LOG.warning("the new generation was not merged within %g s; it stays as it is", bound)
    return False


def _logged(ask: Callable[[], dict[str, Any]], failure: str) -> dict[str, Any] | None:
    """The answer; None after a failure, which is logged."""
    try:
        return retry_transient(ask, failure)
    except SinkError as error:
        _LOG.warning("%s", error)
        return None


def _is_whole(done: dict[str, Any]) -> bool:
    if "error" in done or done["response"]["_shards"]["failed"]:
        _LOG.warning("a part of the new generation could not be merged; it stays as it is")
        return False
    return True
