"""The documents of a whole build and those of single changes come by different queries: they must be the same."""

from collections import Counter
from pathlib import Path

import pytest

from indexer.jobs.reading import Reading, read_catalogue
from indexer.projection.generation import Projector
from indexer.records.problems import ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.states import States
from tests.support.sample import SAMPLE


@pytest.mark.rule("G3")
def test_all_documents_of_a_build_are_those_made_one_by_one(tmp_path: Path) -> None:
    state = States(tmp_path / "state", "a test").create("whole")
    letters = DeadLetters(tmp_path / "letters.ndjson")
    read_catalogue(Reading(NdjsonCatalogue(SAMPLE), None, None, letters, skip_invalid=False), state, ProblemLog())
    projector = Projector(state)

    made = {projected.kind: list(projected.documents()) for projected in projector.all()}

    for projected in projector.all():
        ids = list(projected.ids())
        assert sorted(document.id for document in made[projected.kind]) == sorted(ids)
        assert len(ids) == projected.count
        one_by_one = {document_id: projector.document(projected.kind, document_id) for document_id in ids}
        assert {document.id: document for document in made[projected.kind]} == one_by_one
    shops, facts = made["shops"], made["facts"]
    counted = Counter(
        offers=sum(bool(shop.offers) for shop in shops),  # type: ignore[union-attr]  # these are shops
        redirects=sum(bool(shop.redirects) for shop in shops),  # type: ignore[union-attr]
        shipping=sum(one.shipping is not None for one in facts),  # type: ignore[union-attr]  # these are facts
        signals=sum(bool(one.signals) for one in facts),  # type: ignore[union-attr]
    )
    assert all(counted[what] > 0 for what in ("offers", "redirects", "shipping", "signals"))
    state.close()
