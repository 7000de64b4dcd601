"""The composition: hardened, bounded, gated by health, with secrets in files alone and one port to the outside."""

import re
from typing import Any, Final

import pytest

from indexer.settings import IndexerSettings
from service.settings.service import Settings
from shop_directory.settings.reading import PREFIX
from tests.people.containers.composition import composition, variables_of, words_of
from tests.people.containers.image import stages
from tests.people.containers.test_image import PINNED

OURS: Final = ("secrets", "index", "follower", "service")
ENGINES: Final = ("opensearch", "redis")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """All containers, as they are without any variable."""
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
    workdir = stages()[-1].only("WORKDIR").words[0]
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
