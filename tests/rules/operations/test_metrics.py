"""GET /metrics and /metrics/resources: what was counted, in the Prometheus text format, and the key to it."""

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount
from service.limits.policy import QuotaClass
from service.observability.prometheus import (
    MAX_ACCOUNTS,
    PrometheusMetrics,
    encode_families,
    resource_families,
    scrape_gauge_families,
)
from service.operations import HealthSnapshot, ServiceState, Unavailable
from service.settings.service import Settings
from shop_directory.runtime.metrics import Metrics, safe_metrics
from shop_directory.search.protocol import Generations
from shop_directory.settings.reading import SettingsError
from tests.rules.operations.worlds import BUILT_AT, COMMIT, KEY, serving, world
from tests.support.served import Reply, ask, get, post
from tests.support.wire import Era, call, problem
from tests.support.worlds import reference_world

Labels = tuple[tuple[str, str], ...]


def families_of(reply: Reply) -> dict[str, Metric]:
    """The families of an answer in the text format, by name; each is there once."""
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = list(parse_text(reply.body.decode()))
    families = {family.name: family for family in found}
    assert len(families) == len(found)
    return families


def samples_of(reply: Reply) -> dict[tuple[str, Labels], float]:
    """The samples of an answer by name and labels; each is there once."""
    found = [
        ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
        for family in families_of(reply).values()
        for sample in family.samples
    ]
    samples = dict(found)
    assert len(samples) == len(found)
    return samples


def names_of(reply: Reply) -> set[str]:
    """The metrics of an answer, under the names by which they are asked for; a histogram under its own."""
    names = set()
    for family in families_of(reply).values():
        names |= {family.name} if family.type == "histogram" else {sample.name for sample in family.samples}
    return names


def openmetrics_of(base: str, path: str, **headers: str) -> dict[str, Metric]:
    """The same in OpenMetrics, read by the parser that is strict about its rules."""
    reply = get(base, path, accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5", **headers)
    assert (reply.status, reply.headers["content-type"]) == (
        200,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
    return {family.name: family for family in parse_openmetrics(reply.body.decode())}  # type: ignore[no-untyped-call]


DOCS: Final = Path(__file__).parents[3] / "docs" / "metrics.md"
_ROW: Final = re.compile(r"^\| `((?:shopdir|process)_[a-z_]+)` \|", re.MULTILINE)
REQUESTS: Final = "shopdir_request_duration_seconds"
COUNTING: Final = """
import sys
from service.observability.prometheus import PrometheusMetrics
metrics = PrometheusMetrics()
for _ in range(int(sys.argv[1])):
    metrics.answered("find_shop", "ok", 0.002)
    metrics.cache("stamp", hit=True)
metrics.in_flight(int(sys.argv[1]))
print("counted", flush=True)
sys.stdin.read()
"""
ASKING: Final = """
from service.observability.prometheus import encode_families
from service.observability.prometheus import PrometheusMetrics
print(encode_families(PrometheusMetrics().families(), None)[0].decode())
"""


@pytest.fixture(scope="module")
def base(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(index, reports_file=tmp_path_factory.mktemp("queue") / "reports.sqlite") as url:
        yield url


def test_hostile_callers_cannot_make_series(base: str) -> None:
    post(base, "/tool/find_shop", {"query": "x"})
    get(base, "/nothing")
    call(base, Era.STATELESS, "nothing", b"{}")
    get(base, "/suggest?limit=0")
    get(base, "/metrics")
    before = set(samples_of(get(base, "/metrics")))
    for number in range(170):
        get(base, f"/tool/{secrets.token_hex(8)}")
        call(base, Era.STATELESS, secrets.token_hex(8), b"{}")
        get(base, f"/suggest?{secrets.token_hex(8)}=1", x_api_token=secrets.token_hex(8), user_agent=str(number))
        ask(base, "POST", f"/{number}?x={number}", b"{", {"host": f"{number}.example"})
    found = samples_of(get(base, "/metrics"))
    assert set(found) - before <= {sample for sample in found if sample[0].startswith("shopdir_cache_lookups")}
    assert found[(f"{REQUESTS}_count", (("outcome", "not_found"), ("route", "none")))] >= 340.0


def test_every_metric_is_documented_and_every_documented_metric_is_exposed(tmp_path: Path, index: Path) -> None:
    documented = _ROW.findall(DOCS.read_text(encoding="utf-8"))
    metrics = PrometheusMetrics()
    metrics.engine_call("search", "ok", 0.1)
    metrics.store_call("limiter", "hit", "ok", 0.1)
    metrics.quota("reads", "allowed", network="hosted")
    metrics.circuit("search", "open")
    metrics.typeahead_fetched("ok", 1, 0.1)
    stamp = reference_world(tmp_path).stamp
    follower = FollowerStatus("sql", "7", 3, BUILT_AT, BUILT_AT)
    snapshot = HealthSnapshot(Generations(stamp, None, Operations((), follower)), Unavailable("timed_out"))
    service = ServiceState(
        name="x", version="1", commit=COMMIT, built_at=BUILT_AT, started_at=BUILT_AT, pid=os.getpid()
    )
    exposed = {
        family.name if family.type == "histogram" else sample.name
        for family in [*metrics.families(), *scrape_gauge_families(service, snapshot)]
        for sample in family.samples
    }
    with serving(index) as url:
        get(url, "/suggest?q=a")
        exposed |= names_of(get(url, "/metrics")) | names_of(get(url, "/metrics/resources"))
    assert sorted(documented) == sorted(exposed)


def test_the_exposition_keeps_the_rules_of_openmetrics(base: str) -> None:
    get(base, "/suggest?q=a")
    families = openmetrics_of(base, "/metrics")
    histogram = families[REQUESTS]
    assert (histogram.type, families["shopdir_cache_lookups"].type) == ("histogram", "counter")
    assert families["shopdir_build"].samples[0].labels == {"version": "0.1.1", "commit": COMMIT, "built_at": BUILT_AT}
    assert [name for name, family in families.items() if not family.documentation.endswith(".")] == [
        name for name in families if name.startswith("python_")
    ]
    buckets = [sample for sample in histogram.samples if sample.name.endswith("_bucket")]
    assert {sample.labels["le"] for sample in buckets} >= {"0.001", "10.0", "+Inf"}


@pytest.mark.parametrize("accept", ["application/openmetrics-text;version=\r", "text/plain;version=99;escaping=x", "é"])
def test_a_strange_accept_header_is_not_repeated(base: str, accept: str) -> None:
    reply = ask(base, "GET", "/metrics", headers={"accept": accept.replace("\r", "x")})
    assert reply.status == 200
    assert "99" not in reply.headers["content-type"]
    assert "version=x" not in reply.headers["content-type"]


def test_what_stands_is_read_at_the_scrape(base: str) -> None:
    samples = samples_of(get(base, "/metrics"))
    ready = get(base, "/ready").headers
    assert samples[("shopdir_engine_up", ())] == samples[("shopdir_recheck_queue_up", ())] == 1.0
    info = (("generation", ready["x-generation"]), ("schema_version", families_label(base, "schema_version")))
    assert samples[("shopdir_generation_info", info)] == 1.0
    assert samples[("shopdir_documents", (("kind", "shops"),))] == 3.0
    assert samples[("shopdir_recheck_queue_depth", ())] == 0.0
    assert abs(samples[("shopdir_generation_built_timestamp_seconds", ())] - time.time()) < 600
    assert samples[("shopdir_workers", ())] == 1.0
    assert samples[("process_resident_memory_bytes", ())] > 10_000_000


def families_label(base: str, label: str) -> str:
    (sample,) = families_of(get(base, "/metrics"))["shopdir_generation_info"].samples
    return sample.labels[label]


def test_with_nothing_published_the_scrape_says_so_and_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path / "nothing") as base:
        samples = samples_of(get(base, "/metrics"))
    assert samples[("shopdir_engine_up", ())] == 0.0
    assert [name for name, _ in samples if name.startswith(("shopdir_generation", "shopdir_documents"))] == []
    assert samples[("shopdir_recheck_queue_up", ())] == 1.0


def test_several_workers_count_together_and_a_dead_one_works_on_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def run(script: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=DOCS.parents[1]
        )

    def asked() -> str:
        return run(ASKING).communicate(timeout=30)[0]

    workers = [run(COUNTING, number) for number in ("3", "5")]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "counted\n"
    both = asked()
    workers[0].kill()
    workers[0].communicate()
    one = asked()
    workers[1].communicate()
    for exposed, in_flight in ((both, 8.0), (one, 5.0)):
        assert f'{REQUESTS}_count{{outcome="ok",route="find_shop"}} 8.0' in exposed
        assert f'{REQUESTS}_bucket{{le="0.003",outcome="ok",route="find_shop"}} 8.0' in exposed
        assert f'{REQUESTS}_bucket{{le="0.001",outcome="ok",route="find_shop"}} 0.0' in exposed
        assert 'shopdir_cache_lookups_total{cache="stamp",result="hit"} 8.0' in exposed
        assert f"shopdir_requests_in_flight {in_flight}" in exposed


class _Broken(Metrics):
    def in_flight(self, change: int) -> None:
        raise OSError(change)


def test_metrics_that_fail_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    metrics = safe_metrics(_Broken())
    for _ in range(3):
        metrics.in_flight(1)
    assert len(caplog.messages) == 1


HOSTILE: Final = 'a"b\\c\nd{e}=,# HELP x 厨 \u2028'
MAIN: Final = (("account", "main"), ("provider", "crawler"), ("unit", "requests"))
OVER: Final = (("account", "over"), ("provider", "crawler"), ("unit", "requests"))


def _exposition(operations: Operations | None) -> Reply:
    body, media_type = encode_families(resource_families(operations), None)
    return Reply(200, {"content-type": media_type.decode()}, body)


def _bare(provider: str, account: str, **stated: Any) -> ResourceAccount:  # noqa: ANN401 - any field
    known = dict.fromkeys(("unit", "used", "limit", "resets_at", "status", "observed_at"))
    return ResourceAccount(provider, account, **{**known, **stated})


@pytest.mark.rule("I77", "I7")
def test_the_accounts_are_exposed_as_the_catalogue_states_them(open_base: str) -> None:
    assert samples_of(get(open_base, "/metrics/resources")) == {
        ("shopdir_resource_accounts_known", ()): 1.0,
        ("shopdir_resource_accounts", ()): 3.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
        ("shopdir_resource_used", MAIN): 700.1,
        ("shopdir_resource_used", OVER): 12.0,
        ("shopdir_resource_limit", MAIN): 1000.0,
        ("shopdir_resource_limit", OVER): 10.0,
        ("shopdir_resource_remaining", MAIN): 299.9,
        ("shopdir_resource_remaining", OVER): -2.0,
        ("shopdir_resource_reset_timestamp_seconds", MAIN): 1_935_360_000.0,
        ("shopdir_resource_observed_timestamp_seconds", MAIN): 1_935_316_800.0,
        ("shopdir_resource_status_info", (*MAIN[:2], ("status", "active"), MAIN[2])): 1.0,
    }
    openmetrics = openmetrics_of(open_base, "/metrics/resources")
    assert openmetrics["shopdir_resource_status"].type == "info"
    assert openmetrics["shopdir_resource_used"].samples[0].labels == dict(MAIN)


@pytest.mark.rule("I77", "I7")
def test_when_the_data_cannot_be_read_the_scrape_fails(tmp_path: Path) -> None:
    with serving(tmp_path / "nothing") as base:
        reply = get(base, "/metrics/resources")
    assert (reply.status, reply.json["code"], reply.headers["retry-after"]) == (503, "backend_unavailable", "1")


@pytest.mark.rule("I77", "I7")
def test_a_catalogue_without_accounts_and_a_generation_that_knows_of_none_are_two_things(tmp_path: Path) -> None:
    with serving(world(tmp_path, ())) as base:
        none = samples_of(get(base, "/metrics/resources"))
    assert none == {
        ("shopdir_resource_accounts_known", ()): 1.0,
        ("shopdir_resource_accounts", ()): 0.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
    }
    assert samples_of(_exposition(None)) == {
        ("shopdir_resource_accounts_known", ()): 0.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
    }


@pytest.mark.rule("I77")
def test_hostile_words_of_the_catalogue_stay_within_their_labels() -> None:
    account = _bare(HOSTILE, HOSTILE, unit=HOSTILE, used=1.0, status=HOSTILE)
    samples = samples_of(_exposition(Operations((account,), None)))
    labels = (("account", HOSTILE), ("provider", HOSTILE), ("unit", HOSTILE))
    assert samples[("shopdir_resource_used", labels)] == 1.0
    assert {name for name, _ in samples} == {
        "shopdir_resource_accounts_known",
        "shopdir_resource_accounts",
        "shopdir_resource_accounts_left_out",
        "shopdir_resource_used",
        "shopdir_resource_status_info",
    }


@pytest.mark.rule("I77")
def test_more_accounts_than_are_shown_are_counted() -> None:
    accounts = tuple(_bare("p", f"{number:05}", used=number) for number in range(MAX_ACCOUNTS + 7))
    samples = samples_of(_exposition(Operations(accounts, None)))
    used = [labels for name, labels in samples if name == "shopdir_resource_used"]
    assert (len(used), samples[("shopdir_resource_accounts", ())]) == (MAX_ACCOUNTS, MAX_ACCOUNTS + 7)
    assert samples[("shopdir_resource_accounts_left_out", ())] == 7


@pytest.mark.rule("I77")
@pytest.mark.parametrize(
    ("stated", "left"),
    [
        ({"used": 0.1, "limit": 0.3}, 0.2),
        ({"used": 1.0}, None),
        ({"limit": 1.0}, None),
        ({"used": float("nan"), "limit": 1.0}, None),
        ({"used": 3.0, "limit": 1.0}, -2.0),
    ],
)
def test_what_remains_is_said_only_when_both_figures_are_there(stated: dict[str, float], left: float | None) -> None:
    samples = samples_of(_exposition(Operations((_bare("p", "a", **stated),), None)))
    assert samples.get(("shopdir_resource_remaining", (("account", "a"), ("provider", "p"), ("unit", "")))) == left


PATHS: Final = ("/api/ops/state", "/metrics/resources", "/metrics")
REFUSED: Final = problem(
    401,
    "ops_key_required",
    "This endpoint needs the operations key in the header x-ops-key.",
    title="Operations key required",
)


@pytest.mark.rule("I81", "E1")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("given", [None, "", "wrong", KEY[:-1], f"{KEY}x", KEY.upper(), "\xfc" * 20])
def test_without_the_configured_key_every_request_is_refused(keyed_base: str, path: str, given: str | None) -> None:
    reply = get(keyed_base, path) if given is None else get(keyed_base, path, x_ops_key=given)
    assert reply.summary == (401, "application/problem+json", REFUSED)
    assert reply.headers["www-authenticate"] == 'ApiKey realm="shop-directory-operations", header="x-ops-key"'


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_with_the_key_it_is_answered_and_not_counted(keyed_base: str, path: str) -> None:
    reply = get(keyed_base, path, x_ops_key=KEY)
    assert (reply.status, "ratelimit" in reply.headers, reply.headers["cache-control"]) == (200, False, "no-store")


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_without_a_configured_key_they_are_open_and_count_as_reads(open_base: str, path: str) -> None:
    replies = [get(open_base, path), get(open_base, path, x_ops_key="whatever")]
    assert [reply.status for reply in replies] == [200, 200]
    assert all(reply.headers["ratelimit"].startswith('"reads";') for reply in replies)


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_without_a_key_only_a_host_that_names_this_machine_is_answered(open_base: str, path: str) -> None:
    detail = "Without an operations key this endpoint answers only if the header Host names this machine, such as "
    refused = problem(421, "misdirected_request", detail + "localhost.", title="Misdirected request")
    for host in (
        "rebound.example",
        "localhost.rebound.example:80",
        "127.1",
        "0.0.0.0",
        "[2001:db8::1]",
        "192.0.2.1",
        "",
    ):
        reply = get(open_base, path, host=host)
        assert (host, *reply.summary) == (host, 421, "application/problem+json", refused)
    for host in ("localhost", "LocalHost:8080", "127.0.0.1", "127.8.9.1:80", "[::1]:80", "[::1]", "[::ffff:127.0.0.1]"):
        assert (host, get(open_base, path, host=host).status) == (host, 200)


@pytest.mark.rule("I81")
@pytest.mark.parametrize("given", [{"open_operations": True}, {"ops_key": KEY}], ids=["opened", "key"])
def test_any_host_is_answered_where_the_endpoints_are_opened_or_the_key_is_sent(
    index: Path, given: dict[str, object]
) -> None:
    with serving(index, **given) as base:
        assert [get(base, path, host="shops.internal", x_ops_key=KEY).status for path in PATHS] == [200] * 3


@pytest.mark.rule("R5")
@pytest.mark.parametrize("path", PATHS)
def test_another_method_is_refused_before_the_key_is_looked_at(keyed_base: str, path: str) -> None:
    reply = ask(keyed_base, "POST", path)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.rule("I81", "Q2")
def test_refused_keys_slow_down_the_address_but_stay_401(index: Path) -> None:
    quota = QuotaClass(reads=3, suggest=100, reports=0)
    with serving(index, ops_key=KEY, quota_anonymous=quota) as base:
        refused = [get(base, "/metrics", x_ops_key="wrong").status for _ in range(5)]
        read = post(base, "/tool/list_categories", {})
        holder = get(base, "/metrics", x_ops_key=KEY)
    assert (refused, read.status, holder.status) == ([401] * 5, 429, 200)


@pytest.mark.rule("I81")
def test_a_key_that_is_too_short_stops_the_start_without_being_shown() -> None:
    with pytest.raises(SettingsError, match="--ops-key") as raised:
        Settings.load(ops_key="short-secret")
    assert "short-secret" not in str(raised.value)
