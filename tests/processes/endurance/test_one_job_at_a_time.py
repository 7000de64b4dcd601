"""Builds that meet: one waits for the other or says who has the lease, and both leave a whole generation (G4)."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from indexer.sinks.lease import LeaseHeldError, holding
from tests.engines.integration.leases import held_by_us
from tests.processes.endurance.job import start, wait_for
from tests.processes.endurance.locations import Location
from tests.processes.endurance.test_kills import JOB_BOUND_S, ended, live_documents
from tests.processes.endurance.worlds import expected_documents, write_world

SHOPS: Final = 50
HELD_S: Final = 1.5

pytestmark = pytest.mark.rule("G4")


def test_a_build_waits_while_another_job_has_the_lease(location: Location, tmp_path: Path) -> None:
    catalogue = write_world(tmp_path / "amber", "amber", SHOPS)
    sink = location.sink()
    with ThreadPoolExecutor(1) as pool:
        with holding(sink.lease(), "follow", 0):
            waiting = pool.submit(location.build, catalogue, wait=60.0)
            time.sleep(HELD_S)
            assert (waiting.done(), sink.generations()) == (False, ())
        summary = waiting.result(JOB_BOUND_S)
    assert live_documents(location) == (summary.stamp.generation, expected_documents(catalogue))
    sink.close()
    assert location.remains() == []


def test_a_build_that_must_not_wait_reports_who_has_the_lease(location: Location, tmp_path: Path) -> None:
    catalogue = write_world(tmp_path / "amber", "amber", SHOPS)
    sink = location.sink()
    with holding(sink.lease(), "verify", 0):
        with pytest.raises(LeaseHeldError, match=held_by_us("verify")):
            location.build(catalogue)
        assert sink.generations() == ()
    summary = location.build(catalogue)
    assert live_documents(location) == (summary.stamp.generation, expected_documents(catalogue))
    sink.close()
    assert location.remains() == []


@pytest.mark.slow
@pytest.mark.rule("G1.fence")
def test_two_builds_at_the_same_time_end_well_one_after_the_other(location: Location, tmp_path: Path) -> None:
    catalogues = {colour: write_world(tmp_path / colour, colour, SHOPS) for colour in ("amber", "violet")}
    expected = {colour: expected_documents(catalogue) for colour, catalogue in catalogues.items()}
    log = tmp_path / "log"
    with (
        ended(start("build", location, catalogues["amber"], log)) as one,
        ended(start("build", location, catalogues["violet"], log)) as other,
    ):
        for job in (one, other):
            wait_for(job, "begun")
        assert [job.wait(JOB_BOUND_S) for job in (one, other)] == [0, 0], log.read_text(encoding="utf-8")

    sink = location.sink()
    first, second = sink.generations()
    assert first.retired_at is not None
    documents = {}
    for found in (first, second):
        assert found.stamp is not None
        editor = sink.edit(found.name)
        documents[found.name] = {kind: dict(editor.scan(kind)) for kind in found.stamp.counts}
        editor.close()
    sink.close()
    assert live_documents(location)[0] == second.name
    assert sorted(documents.values(), key=lambda found: len(found["shops"])) == [expected["violet"], expected["amber"]]
    assert location.remains() == []
