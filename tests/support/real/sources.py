"""Says where each real part comes from on this machine, or why it cannot be had; containers among them."""

import gc
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from tests.support.real.node_build import Jdk, JdkMissingError, NodeBuild, build_node, cached_build, find_jdk
from tests.support.real.opensearch import OpenSearchNode, allocate_nodes, archive_classes
from tests.support.real.postgres import PostgresServer, find_postgres_programs
from tests.support.real.redis import RedisServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the module itself uses what testcontainers has deprecated
    from testcontainers.community.opensearch import OpenSearchContainer

OPENSEARCH_IMAGE: Final = "opensearchproject/opensearch:3.8.0"
REDIS_IMAGE: Final = "redis:8"
_REDIS_PORT: Final = 6379
_ENGINE_BOUND_S: Final = 3
_PULL_BOUND_S: Final = 120  # without a word of the registry


@cache
def why_no_container(image: str) -> str | None:
    """Returns why no container of this image can be started, in one line, or None where one can.

    An image that the engine does not have is pulled, once in a process.
    """
    with _leaks_unsaid():
        try:
            client = DockerClient(timeout=_ENGINE_BOUND_S).client
            client.ping()
        except Exception as failure:  # noqa: BLE001 - whatever prevents the connection is the reason
            return f"no Docker engine answers ({type(failure).__name__})"
        try:
            if not client.images.list(name=image):
                client.api.timeout = _PULL_BOUND_S
                client.images.pull(image)
        except Exception as failure:  # noqa: BLE001 - whatever prevents the pull is the reason
            return f"the Docker engine lacks the image {image} and cannot pull it ({type(failure).__name__})"
        finally:
            client.close()
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
    # Its helper removes containers of a run that was killed; containers start without it as well.
    testcontainers_config.ryuk_disabled |= why_no_container(testcontainers_config.ryuk_image) is not None
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


REPOSITORY: Final = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Missing:
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a running server comes from, by a name for people, and why not from a container.

    `open` takes a folder for data and log, starts the server where it is ours, and yields its URL. `prepare` does
    beforehand what may take minutes, once on a machine; it raises BuildError.
    """

    origin: str
    open: Callable[[Path], AbstractContextManager[str]]
    prepare: Callable[[], object] = lambda: None
    no_container: str | None = None


@dataclass(frozen=True, slots=True)
class LocalNodes:
    jdk: Jdk

    def build(self) -> NodeBuild:
        build = build_node(self.jdk)
        archive_classes(build)
        return build

    def one_node(self, folder: Path) -> AbstractContextManager[str]:
        """Yields the URL of a node of its own in `folder`, and stops it at the end."""
        (allocation,) = allocate_nodes(folder, 1)
        return _url_of(OpenSearchNode(self.build(), allocation))


def find_local_nodes(environment: Mapping[str, str] = os.environ) -> LocalNodes | Missing:
    """Returns how to start nodes here: a JDK, and Maven or the finished build of an earlier run."""
    try:
        jdk = find_jdk(environment)
    except JdkMissingError as missing:
        return Missing(str(missing))
    if cached_build(jdk, environment) is None and shutil.which("mvn", path=environment.get("PATH")) is None:
        return Missing("no mvn on the PATH")
    return LocalNodes(jdk)


def find_opensearch(environment: Mapping[str, str] = os.environ) -> Source | Missing:
    """Returns the first of: `$OPENSEARCH_URL` (never stopped), a container, a local node."""
    if url := environment.get("OPENSEARCH_URL"):
        return Source("OPENSEARCH_URL", lambda _: nullcontext(url))
    no_container = why_no_container(OPENSEARCH_IMAGE)
    if no_container is None:
        return Source("testcontainers", lambda _: opensearch_container())
    local = find_local_nodes(environment)
    if isinstance(local, Missing):
        return Missing(f"OPENSEARCH_URL is not set; {no_container}; {local.reason}")
    return Source("a local node", local.one_node, local.build, no_container)


def find_redis(environment: Mapping[str, str] = os.environ) -> Source | Missing:
    """Returns the first of: `$REDIS_URL` (never stopped), a container, a local `redis-server`."""
    if url := environment.get("REDIS_URL"):
        return Source("REDIS_URL", lambda _: nullcontext(url))
    no_container = why_no_container(REDIS_IMAGE)
    if no_container is None:
        return Source("testcontainers", lambda _: redis_container())
    program = find_redis_program(environment)
    if isinstance(program, Missing):
        return Missing(f"REDIS_URL is not set; {no_container}; {program.reason}")
    return Source(
        "a local redis-server", lambda folder: _url_of(RedisServer(str(program), folder)), no_container=no_container
    )


def find_redis_program(environment: Mapping[str, str] = os.environ) -> Path | Missing:
    program = shutil.which("redis-server", path=environment.get("PATH"))
    return Missing("no redis-server on the PATH") if program is None else Path(program)


def find_postgres(environment: Mapping[str, str] = os.environ) -> Source | Missing:
    """Returns the first of: `$POSTGRES_URL` (never stopped; its user makes databases), a local PostgreSQL."""
    if url := environment.get("POSTGRES_URL"):
        return Source("POSTGRES_URL", lambda _: nullcontext(url))
    programs = find_postgres_programs(environment)
    if programs is None:
        return Missing("POSTGRES_URL is not set; no initdb on the PATH or in /usr/lib/postgresql")
    return Source("a local PostgreSQL", lambda _: _url_of(PostgresServer(programs)))


def find_chromium(environment: Mapping[str, str] = os.environ) -> Path | Missing:
    """Returns the Chromium that tests of the page drive: the one without windows, which takes half the time, or any."""
    for name in ("chromium-headless-shell", "chromium"):
        if (program := shutil.which(name, path=environment.get("PATH"))) is not None:
            return Path(program)
    return Missing("no chromium on the PATH")


def find_server_programs(environment: Mapping[str, str] = os.environ) -> Mapping[str, str] | Missing:
    """Returns where nginx, Caddy and systemd's checker of units are, by name; Debian keeps nginx off users' PATH."""
    path = f"{environment.get('PATH', os.defpath)}{os.pathsep}/usr/sbin"
    found = {name: shutil.which(name, path=path) for name in ("nginx", "caddy", "systemd-analyze")}
    missing = [name for name, program in found.items() if program is None]
    return Missing(f"no {', '.join(missing)} on the PATH") if missing else {k: str(v) for k, v in found.items()}


def find_dev_data(environment: Mapping[str, str] = os.environ) -> Path | Missing:
    """Returns the folder of the development data: `$SHOP_DIRECTORY_DEV_DATA`, else `../shared/data`.

    A relative path counts from the repository's root.
    """
    folder = (REPOSITORY / (environment.get("SHOP_DIRECTORY_DEV_DATA") or "../shared/data")).resolve()
    return folder if folder.is_dir() else Missing(f"there is no folder {folder} (SHOP_DIRECTORY_DEV_DATA)")


@contextmanager
def _url_of(server: OpenSearchNode | RedisServer | PostgresServer) -> Iterator[str]:
    with server:
        yield server.url
