"""The composition in a real engine, by docs/containers.md: order, rights, every tool, restarts, updates."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from service.tools.registry import REGISTRY
from tests.containers.composition import (
    BASE,
    BOUND_S,
    Composition,
    Load,
    generation,
    one_address,
    only_block,
    until_ready,
)
from tests.containers.conftest import COMMIT, FORMER, FORMER_COMMIT, NEW, Built
from tests.containers.machine import Machine
from tests.people.docs_in_service.recording import FILE
from tests.support.catalogues import delete
from tests.support.served import get, post, until
from tests.support.transports import http_transport, over_mcp, over_rest

LOCAL: Final = "shop-directory:local"
JOBS: Final = ("secrets-1", "index-1")
OURS: Final = (*JOBS, "follower-1", "service-1")
ENGINES: Final = ("opensearch-1", "redis-1")
REPORT: Final = {"shop_domain": "lumen-larch.internal", "subject_type": "shop", "reason": "unreachable"}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def up(machine: Machine, built: Built) -> Iterator[Composition]:
    """All of it, as `make up` starts it, but with images that are there: the former one of ours."""
    composition = Composition(machine, machine.folder / "composition")
    composition.prepare()
    machine.docker("tag", FORMER, LOCAL)
    try:
        try:
            composition.compose("up", "--detach", "--wait")
        except AssertionError as failure:
            pytest.fail(f"{failure}\n{composition.logs()}")
        yield composition
    finally:
        composition.compose("down", "--volumes")


@pytest.fixture(scope="module")
def token(up: Composition) -> str:
    """A token as the page issues it."""
    line = only_block("sh", "token new").splitlines()[-1]
    issued: str = json.loads(up.shell(f"{line} --json"))["token"]
    return issued


def test_each_starts_after_what_it_needs_and_the_command_returns_when_all_serve(up: Composition) -> None:
    states = {name: up.state(name)["State"] for name in (*OURS, *ENGINES)}
    begun = {name: found["StartedAt"] for name, found in states.items()}
    ended = {name: states[name]["FinishedAt"] for name in JOBS}
    assert {name: states[name]["ExitCode"] for name in JOBS} == dict.fromkeys(JOBS, 0)
    assert ended["secrets-1"] < begun["redis-1"]
    assert begun["opensearch-1"] < begun["index-1"] < ended["index-1"] < begun["follower-1"]
    assert max(ended["index-1"], begun["redis-1"]) < begun["service-1"]
    health = {name: found["Health"]["Status"] for name, found in states.items() if "Health" in found}
    assert health == dict.fromkeys((*ENGINES, "service-1"), "healthy")
    assert get(BASE, "/ready").json["status"] == "ready"
    assert get(BASE, "/version").json["commit"] == FORMER_COMMIT


def test_no_container_has_a_right_or_a_writable_root(up: Composition) -> None:
    for name in (*OURS, *ENGINES):
        found = up.state(name)["HostConfig"]
        assert found["ReadonlyRootfs"] is (name != "opensearch-1")
        assert (found["CapDrop"], found["Memory"] > 0, found["PidsLimit"] > 0) == (["ALL"], True, True)
    users = {"follower-1": "10001", "service-1": "10001", "opensearch-1": "1000"}
    for name in ("follower-1", "service-1", *ENGINES):
        read = ("exec", f"shop-directory-{name}", "cat", "/proc/1/status")
        status = dict(line.split(":\t", 1) for line in up.machine.docker(*read).splitlines() if ":\t" in line)
        assert (status["CapEff"], status["CapPrm"], status["CapBnd"], status["NoNewPrivs"]) == (*["0" * 16] * 3, "1")
        user = status["Uid"].split()[0]
        assert user == users[name] if name in users else user != "0"
    # The engines have no port on the machine, and no way out.
    published = {name: up.state(name)["NetworkSettings"]["Ports"] for name in ENGINES}
    assert [port for ports in published.values() for bound in ports.values() if bound for port in bound] == []


async def test_every_tool_answers_over_rest_and_mcp_as_recorded(up: Composition, token: str) -> None:
    recorded = {
        one["operation"]: one["answer"] for one in reversed(json.loads(FILE.read_text("utf-8"))) if one["status"] == 200
    }
    arguments = {tool.name: tool.examples[0].arguments for tool in REGISTRY}
    answers = {name: over_rest(BASE, name, given, x_api_token=token) for name, given in arguments.items()}
    assert {name: json.loads(answer.text) for name, answer in answers.items()} == {
        name: recorded[name] for name in arguments
    }
    async with http_transport(BASE, "2026-07-28", token) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(arguments)
        for name, given in arguments.items():
            answer = await over_mcp(client, name, dict(given))
            assert (name, answer.failed, answer.structured) == (name, False, recorded[name])


def test_a_report_with_a_token_of_the_page_is_in_redis(up: Composition, token: str) -> None:
    before = len(up.reports())
    assert over_rest(BASE, "report_issue", REPORT).failed
    assert not over_rest(BASE, "report_issue", REPORT, x_api_token=token).failed
    assert len(up.reports()) == before + 1
    key = up.shell(only_block("sh", "ops_key").splitlines()[0])
    assert [get(BASE, "/api/ops/state").status, get(BASE, "/api/ops/state", x_ops_key=key).status] == [401, 200]


@pytest.mark.parametrize("name", ["redis", "opensearch", "follower", "service"])
def test_a_restarted_container_loses_nothing(up: Composition, token: str, name: str) -> None:
    before = (generation(), up.reports())
    up.compose("restart", name)
    until_ready()
    assert (generation(), up.reports()) == before
    found = until(lambda: over_rest(BASE, "find_shop", {"query": "lumen larch"}, x_api_token=token), _answered, BOUND_S)
    assert json.loads(found.text)["results"][0]["domain"] == "lumen-larch.internal"
    assert up.state("follower-1")["State"]["Running"]


def test_a_change_of_the_catalogue_is_followed(up: Composition) -> None:
    """After its restart as well."""
    with (up.catalogue / "changes.ndjson").open("a", encoding="utf-8") as changes:
        changes.write(json.dumps(delete("shops", "shop_kiefernhaus", 2**40)) + "\n")
    until(
        lambda: post(BASE, "/tool/get_shop", {"shop_domain": "kiefernhaus.internal"}).status, lambda it: it == 404, 60
    )


def test_down_and_up_keeps_generation_and_reports_and_publishes_a_new_one(up: Composition, token: str) -> None:
    before = (generation(), up.reports())
    up.compose("down")
    up.compose("up", "--detach", "--wait", "--no-deps", "opensearch", "redis", "service")
    assert (generation(), up.reports()) == before
    up.compose("up", "--detach", "--wait")
    until(generation, lambda found: found != before[0], BOUND_S)
    assert up.reports() == before[1]
    # The token as well, and what was removed stays removed.
    assert not over_rest(BASE, "get_trust", {"shop_domain": "lumen-larch.internal"}, x_api_token=token).failed
    assert post(BASE, "/tool/get_shop", {"shop_domain": "kiefernhaus.internal"}).status == 404


LOAD: Final[tuple[tuple[str, str, dict[str, Any] | None], ...]] = (
    ("GET", "/suggest?q=lumn", None),
    ("POST", "/tool/find_shop", {"query": "lumen larch"}),
    ("POST", "/tool/list_coupons", {"shop_domain": "lumen-larch.internal"}),
)


def test_two_instances_behind_one_address_are_replaced_without_a_lost_request(up: Composition) -> None:
    up.shell(only_block("console", "--scale service=2\n").splitlines()[0])
    instances = ("http://127.0.0.1:8080", "http://127.0.0.1:8081")
    assert [get(base, "/version").json["commit"] for base in instances] == [FORMER_COMMIT] * 2
    with one_address(up.machine) as address:
        load = Load(address, LOAD)
        with load.running(callers=2):
            until(lambda: load.answered, lambda count: count > 100, BOUND_S)
            up.machine.docker("tag", NEW, LOCAL)
            up.shell("export PUBLISH=127.0.0.1:8080-8081\n" + only_block("console", "docker stop"))
            replaced = load.answered
            until(lambda: load.answered, lambda count: count > replaced + 100, BOUND_S)
        assert load.lost == []
        assert [get(base, "/version").json["commit"] for base in instances] == [COMMIT] * 2
    replacements = up.compose("ps", "--quiet", "service").split()
    logs = [up.machine.run(["docker", "logs", one])[1] for one in replacements]
    assert [log.count('"route":"find_shop"') > 10 for log in logs] == [True, True]


def _answered(answer: Any) -> bool:  # noqa: ANN401 - an answer of a transport
    return not answer.failed
