"""The client of a cluster, and a check of the cluster's settings at the start of a job."""

import logging
from collections.abc import Sequence
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException
from opensearchpy.exceptions import ConnectionError as NoConnection

from indexer.sinks.failures import SinkError
from shop_directory.settings.locations import ClusterAccess

_TIMEOUT_S: Final = 60.0
_LEVELS: Final = ("transient", "persistent", "defaults")
_PARAMS: Final = {"include_defaults": "true", "filter_path": "*.search.allow_expensive_queries"}


def open_client(urls: Sequence[str], access: ClusterAccess, connections: int) -> OpenSearch:
    """A client that connects with its first request, and does not retry, as its users do."""
    # The client would log whole requests, and a traceback for each retried one.
    logging.getLogger("opensearch").setLevel(logging.ERROR)
    logging.getLogger("opensearchpy.trace").setLevel(logging.WARNING)
    return OpenSearch(
        list(urls),
        timeout=_TIMEOUT_S,
        max_retries=0,
        retry_on_timeout=True,
        pool_maxsize=connections,
        headers=access.headers(),
        ssl_context=access.tls(),
    )


def check_cluster(client: OpenSearch) -> None:
    """Verify that the cluster's settings allow the queries of searches.

    Raises:
        SinkError: they do not; the message says what to change.
    """
    try:
        found: dict[str, Any] = client.cluster.get_settings(params=dict(_PARAMS))
    except (AuthorizationException, NoConnection):
        return  # not permitted, or reported by the next request
    except OpenSearchException as error:
        raise SinkError(f"the cluster's settings cannot be read: {type(error).__name__}") from error
    stated = (found.get(level, {}).get("search", {}).get("allow_expensive_queries") for level in _LEVELS)
    if str(next((value for value in stated if value is not None), "true")).lower() == "false":
        raise SinkError(
            "the cluster refuses the prefix queries of searches: "
            "set search.allow_expensive_queries to true, or remove it, in its settings"
        )
