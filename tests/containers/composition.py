"""The composition as a user runs it, by the lines and files of docs/containers.md, on the sample catalogue."""

import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.containers.images import OPENSEARCH, REDIS
from tests.containers.machine import Machine, program
from tests.people.docs.pages import BY_PATH
from tests.support.catalogues import write_catalogue
from tests.support.real.process import ServerProcess, ending_with_input, free_ports
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE, records
from tests.support.served import Reply, ask, get, until

BASE: Final = "http://127.0.0.1:8080"
BOUND_S: Final = 180.0
_PLENTY: Final = {"reads": 1_000_000, "suggest": 1_000_000, "reports": 1_000_000}
_OFTEN: Final = {"healthcheck": {"interval": "1s"}}
# All callers have one address here, so their quota is for all of them. Nobody waits for the next look at a container.
_OVERRIDE: Final = {
    "services": {
        "opensearch": _OFTEN,
        "redis": _OFTEN,
        "service": {
            **_OFTEN,
            "environment": {
                "SHOP_DIRECTORY_QUOTA_ANONYMOUS": json.dumps(_PLENTY),
                "SHOP_DIRECTORY_QUOTA_CLASSES": json.dumps({"default": _PLENTY}),
            },
        },
    }
}
_SITE: Final = "shops.example {"


def blocks(language: str, sign: str) -> list[str]:
    """The blocks of docs/containers.md that hold a text."""
    return [one.text for one in BY_PATH["docs/containers.md"].blocks if one.language == language and sign in one.text]


def only_block(language: str, sign: str) -> str:
    (found,) = blocks(language, sign)
    return found


@dataclass(frozen=True, slots=True)
class Composition:
    """The composition of the repository, with the page's override for engines that may not raise limits."""

    machine: Machine
    folder: Path

    @property
    def catalogue(self) -> Path:
        return self.folder / "catalogue"

    def prepare(self) -> None:
        """Write its files, and make `docker compose` a command of the client."""
        self.catalogue.mkdir(parents=True)
        for path in SAMPLE.glob("*.ndjson"):
            # As the recorded answers have it: shops of which all codes may be shown.
            lines = [{name: part for name, part in one.items() if name != "blocked_channels"} for one in records(path)]
            write_catalogue(self.catalogue / path.name, lines)
        (self.folder / "limits.yml").write_text(only_block("yaml", "ulimits: !reset"), "utf-8")
        (self.folder / "quotas.yml").write_text(json.dumps(_OVERRIDE), "utf-8")
        plugins = Path(self.machine.environment["DOCKER_CONFIG"]) / "cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        shutil.copy(program("docker-compose"), plugins)

    @property
    def variables(self) -> dict[str, str]:
        files = (REPOSITORY / "docker-compose.yml", self.folder / "limits.yml", self.folder / "quotas.yml")
        return {
            "COMPOSE_FILE": ":".join(map(str, files)),
            "CATALOGUE": str(self.catalogue),
            "OPENSEARCH_IMAGE": OPENSEARCH,
            "REDIS_IMAGE": REDIS,
            "OPENSEARCH_HEAP": "512m",
            "DRAIN_SECONDS": "5",
        }

    def shell(self, text: str) -> str:
        """Run lines of a page as they stand."""
        return self.machine.run(["sh", "-euc", text], self.variables)[0]

    def compose(self, *words: str) -> str:
        return self.machine.run(["docker", "compose", *words], self.variables)[0]

    def in_service(self, *words: str) -> str:
        return self.compose("exec", "-T", "service", *words)

    def state(self, name: str) -> Any:  # noqa: ANN401 - as the engine has it
        """What the engine says of a container, which is named by its service and number."""
        (found,) = json.loads(self.machine.docker("inspect", f"shop-directory-{name}"))
        return found

    def reports(self) -> list[Any]:
        """All reports that Redis holds."""
        return [
            json.loads(line) for line in self.in_service("shop-directory", "rechecks", "export", "--json").splitlines()
        ]

    def logs(self) -> str:
        return self.compose("logs", "--no-color", "--tail=40")


def until_ready(base: str = BASE) -> None:
    def ready() -> int:
        try:
            return get(base, "/ready").status
        except OSError:
            return 0

    until(ready, lambda status: status == 200, BOUND_S, 0.2)


def generation(base: str = BASE) -> str:
    """What is served; after an outage of the engine one worker may be ready before another one."""
    return until(lambda: get(base, "/suggest?q=lumn").headers.get("x-generation", ""), bool, BOUND_S, 0.2)


@contextmanager
def one_address(machine: Machine) -> Iterator[str]:
    """The page's Caddy, without TLS and on a port of its own; yields its URL."""
    (port,) = free_ports(1)
    text = only_block("caddyfile", _SITE)
    folder = machine.folder / "caddy"
    folder.mkdir(exist_ok=True)
    options = f"{{\n\tadmin off\n\tstorage file_system {folder}/storage\n}}\n"
    (folder / "Caddyfile").write_text(options + text.replace(_SITE, f"http://127.0.0.1:{port} {{"), "utf-8")
    words = ["env", f"HOME={folder}", program("caddy"), "run", "--adapter", "caddyfile", "--config"]
    process = ServerProcess("Caddy", ending_with_input([*words, str(folder / "Caddyfile")]), folder / "caddy.log")
    process.launch()
    try:
        base = f"http://127.0.0.1:{port}"
        until_ready(base)
        yield base
    finally:
        process.stop()


@dataclass(slots=True)
class Load:
    """Requests of several callers, one after the other for each; `lost` are those that were not answered with 200."""

    base: str
    requests: tuple[tuple[str, str, Mapping[str, Any] | None], ...]
    answered: int = 0
    lost: list[str] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)

    def _call(self) -> None:
        while not self._end.is_set():
            for method, path, body in self.requests:
                try:
                    reply = self._ask(method, path, body)
                except OSError as failure:
                    self.lost.append(f"{time.strftime('%X')} {path}: {failure!r}")
                    continue
                if reply.status == 200:
                    self.answered += 1
                else:
                    self.lost.append(f"{time.strftime('%X')} {path}: {reply.status} {reply.body[:200]!r}")
            self._end.wait(0.02)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Reply:
        headers = {"content-type": "application/json"}
        return ask(self.base, method, path, None if body is None else json.dumps(body).encode(), headers)

    @contextmanager
    def running(self, callers: int) -> Iterator[None]:
        threads = [threading.Thread(target=self._call) for _ in range(callers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in threads:
                thread.join()
