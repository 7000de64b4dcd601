"""The composition and the image: hardened, pinned, gated by health; and what the pages for operators name is there."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dockerfile
import pytest

from indexer.settings import IndexerSettings
from service.errors import ServiceError
from service.settings.service import Settings
from shop_directory.settings.reading import PREFIX
from tests.support.real.sources import REPOSITORY

BOUND_S: Final = 60.0


def program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed"
    return found


def composition(**variables: str) -> dict[str, Any]:
    """All of it, as it would be run with these variables in the environment and no file next to it.

    Commands still have `$$` for a single dollar sign.
    """
    words = [program("docker-compose"), "--file", str(REPOSITORY / "docker-compose.yml"), "--env-file", "/dev/null"]
    done = subprocess.run(
        [*words, "config", "--format", "json"],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def words_of(value: Any) -> list[str]:  # noqa: ANN401 - a command as JSON
    return [str(word).replace("$$", "$") for word in value or []]


def variables_of(service: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).replace("$$", "$") for name, value in (service.get("environment") or {}).items()}


DOCKERFILE: Final = REPOSITORY / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Stage:
    instructions: tuple[dockerfile.Command, ...]

    def of(self, name: str) -> tuple[dockerfile.Command, ...]:
        return tuple(found for found in self.instructions if found.cmd == name)

    def only(self, name: str) -> dockerfile.Command:
        (found,) = self.of(name)
        return found

    @property
    def arguments(self) -> dict[str, str]:
        return dict(split_argument(found) for found in self.of("ARG"))

    def environment(self, **arguments: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for instruction in self.of("ENV"):
            names, values = instruction.value[::2], instruction.value[1::2]
            found.update(zip(names, values, strict=True))
        for name, default in self.arguments.items():
            found = {key: value.replace(f"${{{name}}}", arguments.get(name, default)) for key, value in found.items()}
        return found


def split_argument(instruction: dockerfile.Command) -> tuple[str, str]:
    name, _, default = instruction.value[0].partition("=")
    return name, "".join(shlex.split(default))


def instructions() -> tuple[dockerfile.Command, ...]:
    return tuple(dockerfile.parse_file(str(DOCKERFILE)))


def stages() -> tuple[Stage, ...]:
    every = instructions()
    begins = [number for number, found in enumerate(every) if found.cmd == "FROM"]
    return tuple(Stage(every[begin:end]) for begin, end in zip(begins, [*begins[1:], len(every)], strict=True))


def copied_sources() -> tuple[str, ...]:
    """What the image's build copies from the repository; a part of a folder that is copied later is left out."""
    names = [name for found in stages()[0].of("COPY") for name in found.value[:-1]]
    return tuple(name for name in names if not any(name.startswith(f"{folder}/") for folder in names))


OURS: Final = ("secrets", "index", "follower", "service")
ENGINES: Final = ("opensearch", "redis")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = composition()["services"]
    assert set(found) == {*OURS, *ENGINES}
    return found


@pytest.mark.parametrize("name", [*OURS, *ENGINES])
def test_no_container_can_gain_rights_or_take_all_memory_processes_or_disk(services: dict[str, Any], name: str) -> None:
    found = services[name]
    assert (found["cap_drop"], found["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    limits = found["deploy"]["resources"]["limits"]
    assert int(limits["memory"]) > 0
    assert limits["pids"] > 0
    assert found["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}
    # OpenSearch keeps a keystore and the JVM's log next to its configuration; it has no rights of root either way.
    assert found.get("read_only", False) is (name != "opensearch")
    assert found.get("tmpfs", []) == ([] if name == "opensearch" else ["/tmp"])  # noqa: S108 - of a container
    assert not found.get("privileged")
    assert found.get("user") == ("redis" if name == "redis" else None)


def test_one_image_is_all_of_ours_and_the_engines_are_pinned_by_tag_and_digest(services: dict[str, Any]) -> None:
    assert {services[name]["image"] for name in OURS} == {"shop-directory:local"}
    assert len({str(services[name]["build"]) for name in OURS}) == 1
    for name in ENGINES:
        assert PINNED.fullmatch(services[name]["image"])


def test_each_waits_for_the_health_or_the_success_of_what_it_needs(services: dict[str, Any]) -> None:
    healthy, done = "service_healthy", "service_completed_successfully"
    waits = {
        name: {needed: how["condition"] for needed, how in (found.get("depends_on") or {}).items()}
        for name, found in services.items()
    }
    assert waits == {
        "secrets": {},
        "opensearch": {},
        "redis": {"secrets": done},
        "index": {"opensearch": healthy},
        "follower": {"index": done},
        "service": {"index": done, "redis": healthy},
    }
    # What is waited for until it is healthy says so itself; a job and the follower answer no probe.
    probed = {name for name, found in services.items() if "test" in found.get("healthcheck", {})}
    assert probed == {"opensearch", "redis", "service"}
    jobs = {name for name, found in services.items() if found["restart"] == "no"}
    assert jobs == {"secrets", "index"}
    assert {found["restart"] for name, found in services.items() if name not in jobs} == {"unless-stopped"}


def test_a_busy_machine_has_time_to_answer_health_checks(services: dict[str, Any]) -> None:
    found = {name: services[name]["healthcheck"] for name in (*ENGINES, "service")}
    bounds = {name: (check["timeout"], check["retries"], check["start_period"]) for name, check in found.items()}
    assert bounds == dict.fromkeys(found, ("10s", 6, "2m0s"))
    image = stages()[-1].only("HEALTHCHECK")
    assert {"--timeout=10s", "--retries=6", "--start-period=120s"} <= set(image.flags)
    # The request itself ends before that, and says so.
    requests = {"image": image.value, **{name: found[name]["test"] for name in ("opensearch", "service")}}
    waits = {name: re.findall(r"timeout=(\d)\)|--max-time (\d)", " ".join(words)) for name, words in requests.items()}
    assert waits == {"image": [("8", "")], "service": [("8", "")], "opensearch": [("", "8")]}


def test_pips_configuration_reaches_the_build_as_a_secret_and_is_empty_unless_it_is_named() -> None:
    (mount,) = (flag for run in stages()[0].of("RUN") for flag in run.flags if "type=secret" in flag)
    assert mount == "--mount=type=secret,id=pip,target=/etc/pip.conf"
    for variables, file in (({}, "/dev/null"), ({"PIP_CONFIG_FILE": "/etc/other.conf"}, "/etc/other.conf")):
        whole = composition(**variables)
        assert [secret["source"] for secret in whole["services"]["service"]["build"]["secrets"]] == ["pip"]
        assert whole["secrets"]["pip"]["file"] == file
        assert [name for name, found in whole["services"].items() if found.get("secrets")] == []


def test_a_range_of_ports_is_for_as_many_instances() -> None:
    (line,) = re.findall(r"^PUBLISH=(\S+) docker compose up .*--scale service=2$", CONTAINERS, re.MULTILINE)
    (port,) = composition(PUBLISH=line)["services"]["service"]["ports"]
    first, last = map(int, port["published"].split("-"))
    assert (port["host_ip"], last - first + 1) == ("127.0.0.1", 2)


def test_only_the_service_has_a_port_on_this_machine_alone_and_the_engines_have_no_way_out() -> None:
    whole = composition()
    published = {name: found["ports"] for name, found in whole["services"].items() if found.get("ports")}
    assert list(published) == ["service"]
    (port,) = published["service"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8080", 8080)
    assert whole["networks"]["data"]["internal"] is True
    for name in ENGINES:
        assert set(whole["services"][name]["networks"]) == {"data"}
    assert whole["services"]["secrets"]["network_mode"] == "none"


def test_secrets_are_in_files_that_only_their_users_can_read(services: dict[str, Any]) -> None:
    sees = {
        name: volume.get("read_only", False)
        for name, found in services.items()
        for volume in found.get("volumes", [])
        if volume["source"] == "secrets"
    }
    assert sees == {"secrets": False, "redis": True, "service": True}
    for found in services.values():
        for name, value in variables_of(found).items():
            assert "PASSWORD" not in name or name.endswith("_FILE"), name
            assert "KEY" not in name or name.endswith("_FILE"), name
            assert "@" not in value, name
        assert not re.search(r"(requirepass\s+|on >)[^%\s]", " ".join(words_of(found.get("command"))))


def test_the_private_state_is_the_indexers_and_the_fetched_files_the_services_alone(services: dict[str, Any]) -> None:
    mounts = {
        name: {volume["source"]: volume["target"] for volume in found.get("volumes", []) if volume["type"] == "volume"}
        for name, found in services.items()
    }
    workdir = stages()[-1].only("WORKDIR").value[0]
    assert {name: found["state"] for name, found in mounts.items() if "state" in found} == {
        "index": workdir,
        "follower": workdir,
    }
    for name in ("index", "follower"):
        assert variables_of(services[name])[f"{PREFIX}STATE_DIR"].startswith(f"{workdir}/")
    fetched = {name: found["typeahead"] for name, found in mounts.items() if "typeahead" in found}
    assert fetched == {"service": variables_of(services["service"])[f"{PREFIX}TYPEAHEAD_DIR"]}


def test_redis_persists_what_was_acknowledged_and_evicts_nothing(services: dict[str, Any]) -> None:
    words = words_of(services["redis"]["command"])
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert words[:2] == ["redis-server", "/run/shop-directory/redis.conf"]
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"


def test_opensearch_locks_its_heap_and_makes_no_index_of_ours_by_itself(services: dict[str, Any]) -> None:
    found, given = services["opensearch"], variables_of(services["opensearch"])
    assert found["ulimits"]["memlock"] == {"soft": -1, "hard": -1}
    assert found["ulimits"]["nofile"]["soft"] >= 65_536
    assert (given["bootstrap.memory_lock"], given["discovery.type"]) == ("true", "single-node")
    assert given["action.auto_create_index"] == "-shop-directory-*,+*"
    # The first word of both is the heap; no more than half of what the container may take.
    heaps = re.fullmatch(r"-Xms(\d+)g -Xmx(\d+)g", given["OPENSEARCH_JAVA_OPTS"])
    assert heaps is not None
    assert heaps[1] == heaps[2]
    assert 2 * int(heaps[1]) * 2**30 <= int(found["deploy"]["resources"]["limits"]["memory"])


@pytest.mark.parametrize("name", ["index", "follower", "service"])
def test_every_setting_that_is_given_exists(services: dict[str, Any], name: str) -> None:
    fields = Settings.model_fields if name == "service" else IndexerSettings.model_fields
    named = {found.removeprefix(PREFIX).removesuffix("_FILE").lower() for found in variables_of(services[name])}
    assert named - set(fields) == set()


def test_the_service_is_one_of_several_workers_with_shared_stores(services: dict[str, Any]) -> None:
    given = variables_of(services["service"])
    assert int(given[f"{PREFIX}WORKERS"]) > 1
    assert {given[f"{PREFIX}{name}"] for name in ("TOKEN_STORE", "REPORTS", "LIMITER")} == {"redis"}


PINNED: Final = re.compile(r"[a-z0-9./-]+:[0-9][a-z0-9.-]*@sha256:[0-9a-f]{64}")


def test_the_linter_finds_nothing_and_finds_what_is_wrong() -> None:
    def linted(text: str) -> tuple[int, str]:
        words = [program("hadolint"), "--no-color", "-"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=BOUND_S, check=False)
        return done.returncode, done.stdout

    text = DOCKERFILE.read_text(encoding="utf-8")
    assert linted(text) == (0, "")
    assert "DL3025" in linted(text.replace('ENTRYPOINT ["shop-directory"]', "ENTRYPOINT shop-directory"))[1]


def test_both_stages_stand_on_one_image_that_tag_and_digest_name() -> None:
    base = dict(split_argument(found) for found in instructions() if found.cmd == "ARG")["PYTHON_IMAGE"]
    assert PINNED.fullmatch(base)
    assert [stage.only("FROM").value[0] for stage in stages()] == ["${PYTHON_IMAGE}"] * 2
    assert composition()["services"]["service"]["build"]["args"]["PYTHON_IMAGE"] == base


def test_the_machine_code_is_compiled_again_only_when_its_own_sources_or_the_packages_change() -> None:
    steps = stages()[0].instructions
    compiled = next(number for number, step in enumerate(steps) if "shop_directory.typeahead" in step.value[0])
    assert steps[compiled].cmd == "RUN"
    copied = {name for step in steps[:compiled] if step.cmd == "COPY" for name in step.value[:-1]} - {
        "requirements.lock"
    }
    files = {str(path.relative_to(REPOSITORY)) for name in copied for path in python_files(REPOSITORY / name)}
    ask = (
        "import json, sys, shop_directory.typeahead.__main__\n"
        "print(json.dumps([module.__file__ for name, module in sys.modules.items() if hasattr(module, '__file__')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=REPOSITORY, capture_output=True, text=True, timeout=BOUND_S, check=True
    )
    loaded = {Path(file) for file in json.loads(done.stdout) if file and Path(file).is_relative_to(REPOSITORY)}
    installed = Path(sys.prefix)
    assert files == {str(file.relative_to(REPOSITORY)) for file in loaded if not file.is_relative_to(installed)}
    # Nothing that differs with every build comes before.
    assert not [step for step in steps[:compiled] if step.cmd == "ARG"]


def python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def test_packages_are_wheels_of_the_lock_with_their_hashes_and_no_index_is_named() -> None:
    installs = [found.value[0] for found in stages()[0].of("RUN") if " pip install " in found.value[0]]
    assert len(installs) == 2
    assert "--only-binary :all: --require-hashes -r requirements.lock" in installs[0]
    assert "--no-deps --no-index --find-links /wheels shop-directory" in installs[1]
    assert not re.search(r"https?://(?!127\.0\.0\.1)|index-url|trusted-host", DOCKERFILE.read_text(encoding="utf-8"))


def test_what_runs_has_no_root_no_shell_around_it_and_nothing_of_the_build_but_the_environment() -> None:
    final = stages()[-1]
    assert final.only("USER").value == ("10001:10001",)
    last = [found.cmd for found in final.instructions]
    assert last.index("USER") > max(number for number, name in enumerate(last) if name in {"RUN", "COPY"})
    for name, words in {"ENTRYPOINT": ("shop-directory",), "CMD": ("serve",)}.items():
        assert (final.only(name).value, final.only(name).json) == (words, True)
    probe = final.only("HEALTHCHECK")
    assert (probe.value[:2], probe.json) == (("CMD", "python"), True)
    assert [(found.flags, found.value) for found in final.of("COPY")] == [
        (("--from=build",), ("/opt/shop-directory", "/opt/shop-directory"))
    ]
    assert not [found for found in instructions() if found.cmd in {"ADD", "VOLUME", "SHELL", "ONBUILD"}]


def test_the_builder_is_sent_what_the_image_copies_and_nothing_else() -> None:
    lines = [line for line in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").split("\n") if line]
    rules = [line for line in lines if not line.startswith("#")]
    copied = set(copied_sources())
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied
    assert set(rules) - {"*"} - {f"!{name}" for name in copied} == {"**/__pycache__", "**/*.egg-info"}


DOCS: Final = REPOSITORY / "docs"
PAGES: Final = (DOCS / "operations.md", DOCS / "containers.md")
OPERATIONS, CONTAINERS = (page.read_text(encoding="utf-8") for page in PAGES)
_NAMES: Final = re.compile(r"^\| ((?:`[\w.]+`(?:, )?)+) \|", re.MULTILINE)


def named(text: str, title: str) -> set[str]:
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"`([\w.]+)`", " ".join(_NAMES.findall(section))))


def test_every_error_that_a_caller_can_get_has_its_line() -> None:
    assert named(OPERATIONS, "Errors that callers see") == {kind.code for kind in ServiceError.__subclasses__()}


def test_every_metric_of_an_alert_is_documented() -> None:
    alerts = set(re.findall(r"shopdir_\w+", OPERATIONS.partition("## When you are called")[2]))
    metrics = (DOCS / "metrics.md").read_text("utf-8")
    assert len(alerts) > 5
    assert [name for name in alerts if f"| `{name.removesuffix('_count')}` |" not in metrics] == []


def test_every_variable_of_the_composition_is_documented_and_no_other() -> None:
    words = [program("docker-compose"), "--file", str(REPOSITORY / "docker-compose.yml"), "--env-file", "/dev/null"]
    done = subprocess.run(
        [*words, "config", "--variables"], capture_output=True, text=True, timeout=BOUND_S, check=True
    )
    variables = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert named(CONTAINERS, "Settings") == variables


def test_every_container_is_documented_and_no_other() -> None:
    assert named(CONTAINERS, "What is there") == {*composition()["services"], *composition()["volumes"]}
