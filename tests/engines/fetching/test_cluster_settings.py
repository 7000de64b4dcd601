"""What a cluster forbids is said by a job before it begins, and not by searches later."""

from pathlib import Path

import pytest

from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.sink import OpenSearchSink
from tests.engines.fetching.files import Files

pytestmark = pytest.mark.opensearch


def test_a_cluster_that_refuses_prefix_queries_is_refused(files: Files, tmp_path: Path) -> None:
    sink = OpenSearchSink([files.url], files.prefix, letters=tmp_path / "letters")
    assert sink.location.startswith(f"the indices {files.prefix} in cluster ")
    for level in ("persistent", "transient"):
        files.client.cluster.put_settings(body={level: {"search.allow_expensive_queries": False}})
        try:
            with pytest.raises(SinkError, match=r"set search\.allow_expensive_queries to true, or remove it"):
                _ = sink.location
        finally:
            files.client.cluster.put_settings(body={level: {"search.allow_expensive_queries": None}})
    assert sink.location.startswith(f"the indices {files.prefix} in cluster ")
    sink.close()
