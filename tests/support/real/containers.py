"""Starts OpenSearch and Redis as containers, where a Docker engine answers.

Only `tests.support.real.sources` imports this, and only when no URL is given: the import is slow and warns.
"""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the module itself uses what testcontainers has deprecated
    from testcontainers.community.opensearch import OpenSearchContainer

OPENSEARCH_IMAGE: Final = "opensearchproject/opensearch:3.8.0"
REDIS_IMAGE: Final = "redis:8"
_REDIS_PORT: Final = 6379
_ENGINE_BOUND_S: Final = 3


def why_no_engine() -> str | None:
    """Returns why no Docker engine can be used, in one line, or None where one answers."""
    with _leaks_unsaid():
        try:
            client = DockerClient(timeout=_ENGINE_BOUND_S).client
            client.ping()
            client.close()
        except Exception as failure:  # noqa: BLE001 - whatever prevents the connection is the reason
            return f"no Docker engine answers ({type(failure).__name__})"
    return None


@contextmanager
def opensearch_container() -> Iterator[str]:
    """Yields the URL of a node in a container, green and without the security plugin; removes it at the end."""
    container = OpenSearchContainer(OPENSEARCH_IMAGE, security_enabled=False)
    container.with_env("OPENSEARCH_JAVA_OPTS", "-Xms512m -Xmx512m")
    container.with_env("action.auto_create_index", "false")
    container.with_env("cluster.routing.allocation.disk.threshold_enabled", "false")
    with _running(container, container.port) as address:
        yield f"http://{address}"


@contextmanager
def redis_container() -> Iterator[str]:
    """Yields the URL of a Redis in a container that stores nothing on disk; removes it at the end."""
    container = DockerContainer(REDIS_IMAGE).with_exposed_ports(_REDIS_PORT)
    container.with_command(["redis-server", "--save", "", "--appendonly", "no"])
    container.waiting_for(LogMessageWaitStrategy("Ready to accept connections"))
    with _running(container, _REDIS_PORT) as address:
        yield f"redis://{address}/0"


@contextmanager
def _running(container: DockerContainer, port: int) -> Iterator[str]:
    """Yields `host:port` as seen from here."""
    with _leaks_unsaid():
        with container:
            yield f"{container.get_container_host_ip()}:{container.get_exposed_port(port)}"
        container.get_docker_client().client.close()


@contextmanager
def _leaks_unsaid() -> Iterator[None]:
    """Collects the sockets that the Docker client leaves open before a test is blamed for them."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
