"""GET /metrics: what was counted, under names that the documentation has, with labels that callers can't multiply."""

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from index_mappings.generations import FollowerStatus, Operations
from service.observability.prometheus import PrometheusMetrics, scrape_gauge_families
from service.operations import HealthSnapshot, ServiceState, Unavailable
from service.runtime.telemetry import Metrics, safe_metrics
from service.search.protocol import Generations
from tests.rules.operations.expositions import families_of, names_of, openmetrics_of, samples_of
from tests.rules.operations.worlds import BUILT_AT, COMMIT, serving
from tests.support.rpc import Era, call
from tests.support.served import ask, get, post
from tests.support.worlds import reference_world

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
    """A service whose counts and reports no other test makes."""
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
    metrics.quota("reads", "allowed")
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
    """The label of the one series about the generation."""
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
