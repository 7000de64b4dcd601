"""The installed wheel: the containers' own commands with real parts, and the command on its own.

The containers' commands run in clean folders, in the order of the composition: secrets, Redis, the index job, the
follower, the service. Those that go on are stopped as Docker does it.
"""

import json
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.people.containers.building import Installed, build_wheel, compile_typeahead, copy_sources, install
from tests.people.containers.test_composition import composition, stages, variables_of, words_of
from tests.people.publishing.try_wheel import try_command
from tests.support.emptying import unused_prefix
from tests.support.real.process import free_ports
from tests.support.sample import SAMPLE
from tests.support.served import Reply, get, post

BOUND_S: Final = 60.0
COMMIT: Final = "3f786850e387550fdab836ed7e6dc881de23001b"
BUILT_AT: Final = "2026-11-21T09:30:00Z"
BUILT: Final = {"COMMIT": COMMIT, "BUILT_AT": BUILT_AT}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where containers' commands run: a clean folder, with a log for each command.

    `stands_for` is the replacement of each text, the longer ones first.
    """

    installed: Installed
    services: Mapping[str, Any]
    stands_for: Mapping[str, str]
    folder: Path

    def words(self, words: Sequence[str]) -> list[str]:
        return [self._here(word) for word in words]

    def command(self, name: str) -> list[str]:
        """What a container of ours runs: its entrypoint, or the image's, then its command."""
        found, image = self.services[name], stages()[-1]
        entrypoint = words_of(found.get("entrypoint")) or list(image.only("ENTRYPOINT").value)
        return self.words([*entrypoint, *(words_of(found.get("command")) or image.only("CMD").value)])

    def environment(self, name: str, **arguments: str) -> dict[str, str]:
        """The image's environment and what the composition adds; the rest of this machine's stays out."""
        given = stages()[-1].environment(**arguments) | variables_of(self.services[name])
        found = {key: self._here(value) for key, value in given.items()}
        return found | {"PATH": f"{self.installed.programs}:/usr/local/bin:/usr/bin:/bin"}

    def probe(self, name: str) -> list[str]:
        """The command of a container's health check: the composition's, else the image's."""
        stated = words_of((self.services[name].get("healthcheck") or {}).get("test"))
        words = stated or list(stages()[-1].only("HEALTHCHECK").value)
        return self.words(words[1:]) if words[0] == "CMD" else ["/bin/sh", "-c", self._here(words[1])]

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.workdir, env=environment, capture_output=True, text=True, timeout=BOUND_S, check=False
        )

    @contextmanager
    def started(self, name: str, words: Sequence[str], environment: Mapping[str, str]) -> Iterator["Running"]:
        """Start a command that goes on until it gets a signal; it is killed at the end if it still runs."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as stream:
            process = subprocess.Popen(
                words, cwd=self.workdir, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.wait()

    @property
    def workdir(self) -> Path:
        return Path(self._here(stages()[-1].only("WORKDIR").value[0]))

    def _here(self, text: str) -> str:
        for there, here in self.stands_for.items():
            text = text.replace(there, here)
        return text


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND_S)

    def becomes(self, machine: Machine, probe: Sequence[str], environment: Mapping[str, str]) -> None:
        end = time.monotonic() + BOUND_S
        while machine.run(probe, environment).returncode != 0:
            assert self.process.poll() is None, f"it has ended: {self.said}"
            assert time.monotonic() < end, f"it does not become healthy: {self.said}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The image's programs, with the machine code that its last step compiles in half a minute."""
    folder = tmp_path_factory.mktemp("image")
    build_wheel(copy_sources(folder), folder / "wheels")
    programs = install(folder / "wheels", folder / "opt")
    compile_typeahead(programs)
    return programs


@pytest.fixture
def machine(installed: Installed, tmp_path: Path, opensearch_url: str) -> Iterator[Machine]:
    """The image's programs and the composition, with a prefix and ports of its own."""
    redis, port = free_ports(2)
    stands_for = {
        "/var/lib/shop-directory": str(tmp_path / "state"),
        "/run/shop-directory": str(tmp_path / "run"),
        "/var/cache/shop-directory": str(tmp_path / "cache"),
        "/catalogue": str(tmp_path / "catalogue"),
        "http://opensearch:9200": opensearch_url,
        "http://127.0.0.1:9200": opensearch_url,
        "redis:6379": f"127.0.0.1:{redis}",
        "redis-cli ": f"redis-cli -p {redis} ",
        "0.0.0.0": "127.0.0.1",
        "8080": str(port),
    }
    for name in ("state", "run", "cache"):
        (tmp_path / name).mkdir(mode=0o750)
    shutil.copytree(SAMPLE, tmp_path / "catalogue")
    with unused_prefix(opensearch_url) as prefix:
        yield Machine(installed, composition(INDEX_PREFIX=prefix)["services"], stands_for, tmp_path)


@contextmanager
def redis(machine: Machine) -> Iterator[Running]:
    """Redis as the composition starts it, from the file that the job of the secrets has made."""
    assert shutil.which("redis-server") is not None, "this test needs redis-server"
    (machine.folder / "redis").mkdir()
    port = machine.stands_for["redis:6379"].rpartition(":")[2]
    words = [word if word != "/data" else str(machine.folder / "redis") for word in redis_words(machine)]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    with machine.started("redis", [*words, "--bind", "127.0.0.1", "--port", port], environment) as running:
        running.becomes(machine, machine.probe("redis"), environment)
        yield running


def redis_words(machine: Machine) -> list[str]:
    return machine.words([str(word) for word in machine.services["redis"]["command"]])


def found(reply: Reply) -> list[Any]:
    return [reply.status, *(shop["domain"] for shop in reply.json["results"])]


@pytest.mark.opensearch
@pytest.mark.redis
@pytest.mark.rule("I73", "I74")
def test_the_commands_of_the_containers_do_what_they_should_in_clean_folders(machine: Machine) -> None:
    """Takes over a minute, half of it for the image's machine code: seven commands are run, in their order."""
    made = machine.run(machine.command("secrets"), machine.environment("secrets"))
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    secret_files = {path.name: path.read_text(encoding="utf-8") for path in (machine.folder / "run").iterdir()}
    assert set(secret_files) == {"redis_password", "redis_admin_password", "ops_key", "redis.conf"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (machine.folder / "run").iterdir()} == {0o640}

    with redis(machine):
        # A second start of everything makes no other secrets.
        assert machine.run(machine.command("secrets"), machine.environment("secrets")).returncode == 0
        assert {path.name: path.read_text("utf-8") for path in (machine.folder / "run").iterdir()} == secret_files

        job = machine.run(machine.command("index"), machine.environment("index"))
        assert (job.returncode, job.stdout[:20]) == (0, "Published generation"), job.stderr
        with machine.started("follower", machine.command("follower"), machine.environment("follower")) as follower:
            serve_and_stop(machine, secret_files)
            assert (follower.stop(), follower.said.splitlines()[-1][:12]) == (0, "Followed for")


def test_the_installed_wheel_indexes_its_sample_serves_it_and_answers_over_stdio(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Code for another processor would not be used.
    monkeypatch.setenv("NUMBA_CPU_NAME", stages()[0].environment()["NUMBA_CPU_NAME"])
    tried = try_command(installed.programs / "shop-directory", tmp_path)
    suggested = [shop["name"] for shop in tried["suggest"]["shops"]]
    found = [shop["name"] for shop in tried["found"]["results"]]
    assert suggested
    assert all("lum" in name.lower() for name in suggested)
    assert set(suggested) <= set(found)


def asked(base: str, tool: str, body: dict[str, Any], **headers: str) -> Reply:
    """A tool's answer; a busy machine's 503 is asked again after the seconds that it names, as a client would."""
    end = time.monotonic() + BOUND_S
    while (reply := post(base, f"/tool/{tool}", body, **headers)).status == 503 and time.monotonic() < end:
        time.sleep(int(reply.headers["retry-after"]))
    return reply


def kinds_of_keys(machine: Machine, password: str) -> set[str]:
    words = machine.words(["redis-cli --scan"])[0].split()
    scanned = machine.run(words, {"PATH": "/usr/local/bin:/usr/bin:/bin", "REDISCLI_AUTH": password})
    return {key.partition(":")[0] for key in scanned.stdout.split()}


def serve_and_stop(machine: Machine, secret_files: dict[str, str]) -> None:
    """The service by its command: healthy, ready, answering, following, and gone with exit code 0 on SIGTERM."""
    environment = machine.environment("service", **BUILT)
    base = f"http://127.0.0.1:{machine.stands_for['8080']}"
    with machine.started("service", machine.command("service"), environment) as service:
        # The image's own check, then the composition's.
        image = Machine(machine.installed, {"service": {}}, machine.stands_for, machine.folder)
        service.becomes(machine, image.probe("service"), environment)
        service.becomes(machine, machine.probe("service"), environment)
        assert get(base, "/version").json == {"service": "shop-directory", "commit": COMMIT, "builtAt": BUILT_AT}
        assert get(base, "/ready").json["status"] == "ready"
        assert found(asked(base, "find_shop", {"query": "lumen larch"})) == [200, "lumen-larch.internal"]
        assert [
            get(base, "/api/ops/state").status,
            get(base, "/api/ops/state", x_ops_key=secret_files["ops_key"]).status,
        ] == [401, 200]
        issued = machine.run(
            machine.words(["shop-directory", "token", "new", "--name", "a test", "--json"]), environment
        )
        assert issued.returncode == 0, issued.stderr
        report = {"shop_domain": "lumen-larch.internal", "subject_type": "shop", "reason": "unreachable"}
        token = json.loads(issued.stdout)["token"]
        assert asked(base, "report_issue", report, x_api_token=token).status == 200, service.said
        # With no more rights than its own user has: tokens, reports and quotas are all in Redis.
        assert kinds_of_keys(machine, secret_files["redis_admin_password"]) == {"{shopdir", "{shopdir}", "shopdir"}
        assert service.stop() == 0, service.said
        said = service.said
    assert not [secret for secret in (*secret_files.values(), token) if secret in said]
