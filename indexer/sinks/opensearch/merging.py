"""A new generation's indices are merged to one segment each: a search looks into each segment anew.

Nothing is answered otherwise for it, so a merge that fails or takes too long is told of and fails no build.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from opensearchpy import OpenSearch

from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.retries import retry_transient

# A million shops take minutes, as their build does; nothing waits for longer than this.
MERGE_BOUND_S: Final = 600.0

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


def merge(
    client: OpenSearch, indices: Sequence[str], meanwhile: Callable[[], None], bound: float = MERGE_BOUND_S
) -> bool:
    """Merge, and wait for the end. What is shown is what was shown before, until the next refresh.

    Args:
        client: asks the cluster.
        indices: concrete names; only of a generation that nobody else writes to.
        meanwhile: called again and again, at least each half second while the cluster answers; its errors end the
            waiting.
        bound: seconds; a merge that takes longer goes on in the cluster without being waited for.

    Returns:
        Whether all of it was merged; if not, that is logged.
    """
    until = time.monotonic() + bound
    names = ",".join(indices)
    # A merge leaves out the sources that the engine holds for replicas, a third of an index, as far as a commit has
    # what they are of.
    _asked(lambda: client.indices.flush(index=names), "what the new generation's merge could leave out is not known")
    # Parameters anew for each try: the client takes some of them out.
    begun = _asked(
        lambda: client.indices.forcemerge(index=names, params={"max_num_segments": 1, "wait_for_completion": "false"}),
        "the new generation could not be merged",
    )
    if begun is None:
        return False
    task, pause = begun["task"], _FIRST_PAUSE_S
    while time.monotonic() < until:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
        meanwhile()
        found = _asked(lambda: client.tasks.get(task_id=task), "it is not known whether the new generation was merged")
        if found is None:
            return False
        if found["completed"]:
            return _is_whole(found)
    _LOG.warning("the new generation was not merged within %g s; it is read as it is", bound)
    return False


def _asked(ask: Callable[[], dict[str, Any]], failure: str) -> dict[str, Any] | None:
    """An answer; None where there is none to be had, which is logged."""
    try:
        return retry_transient(ask, failure)
    except SinkError as error:
        _LOG.warning("%s", error)
        return None


def _is_whole(done: dict[str, Any]) -> bool:
    if "error" in done or done["response"]["_shards"]["failed"]:
        _LOG.warning("a part of the new generation could not be merged; it is read as it is")
        return False
    return True
