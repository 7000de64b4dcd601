"""Builds that meet: one waits for the other, and both leave a whole generation (G4)."""

from pathlib import Path
from typing import Final

import pytest

from indexer.sinks.protocol import scan
from tests.processes.endurance.job import start, wait_for
from tests.processes.endurance.locations import Location
from tests.processes.endurance.test_kills import JOB_BOUND_S, ended, live_documents
from tests.processes.endurance.worlds import expected_documents, write_world

SHOPS: Final = 50

pytestmark = pytest.mark.rule("G4")


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
        documents[found.name] = {kind: dict(scan(editor, kind)) for kind in found.stamp.counts}
        editor.close()
    sink.close()
    assert live_documents(location)[0] == second.name
    assert sorted(documents.values(), key=lambda found: len(found["shops"])) == [expected["violet"], expected["amber"]]
    assert location.remains() == []
