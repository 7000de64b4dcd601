"""What a cluster must allow: settings of it that would make searches fail later are found at the start of a job."""

from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException
from opensearchpy.exceptions import ConnectionError as NoConnection

from indexer.sinks.failures import SinkError

_LEVELS: Final = ("transient", "persistent", "defaults")
_PARAMS: Final = {"include_defaults": "true", "filter_path": "*.search.allow_expensive_queries"}


def check_cluster(client: OpenSearch) -> None:
    """Make sure that the cluster runs the queries that searches need.

    Raises:
        SinkError: it does not; the text says what to change.
    """
    try:
        found: dict[str, Any] = client.cluster.get_settings(params=dict(_PARAMS))
    except (AuthorizationException, NoConnection):
        return  # it is not ours to know, or the job's own requests find out
    except OpenSearchException as error:
        raise SinkError(f"the cluster's settings cannot be read: {type(error).__name__}") from error
    stated = (found.get(level, {}).get("search", {}).get("allow_expensive_queries") for level in _LEVELS)
    if str(next((value for value in stated if value is not None), "true")).lower() == "false":
        raise SinkError(
            "the cluster refuses the prefix queries of searches: "
            "set search.allow_expensive_queries to true, or remove it, in its settings"
        )
