"""Whatever changes come, in any order, twice, cut anywhere: the index is that of what stands at last (G3)."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from index_mappings.documents import stored_part
from index_mappings.opensearch import wire_document
from tests.engines.following.followed import FollowedIndex, right
from tests.engines.following.statements import Story, how_many
from tests.support.memory_sink import MemorySink

_EXAMPLES = max(40, how_many(400) // 10)

Everything = dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]]


def _everything(sink: MemorySink) -> Everything:
    """All documents, with what engines search and with what they return."""
    return {
        kind: {document.id: (wire_document(document), stored_part(document)) for document in documents}
        for kind, documents in sink.documents.items()
    }


@pytest.mark.rule("G3", "C1")
@settings(max_examples=_EXAMPLES, phases=(Phase.generate,), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chance=st.randoms(note_method_calls=False, use_true_random=False), count=st.integers(1, 60))
def test_changes_in_any_order_lead_to_what_a_build_of_the_newest_records_gives(chance: Random, count: int) -> None:
    story = Story(chance, shops=5)
    statements = story.statements(count)
    with tempfile.TemporaryDirectory() as name:
        folder, sink = Path(name), MemorySink()
        there = [one for one in story.catalogue(statements) if one.record is not None]
        lines: dict[str, list[Any]] = {"shops": []}
        for one in there:
            lines.setdefault(one.type, []).append(one.record)
        followed = FollowedIndex(folder, sink, lines)
        followed.build()
        for some in story.cuts(story.arrivals(statements), 12):
            followed.append_statements(some)
            before = followed.live.sequence
            done = followed.step(most=chance.randint(1, 12))
            assert followed.live.sequence == before + done.updates
        followed.drain()
        expected = right(folder / "right", statements)
        assert _everything(sink) == _everything(expected)
        assert (followed.live.counts, followed.drain().applied) == (expected.live().counts, 0)  # type: ignore[union-attr]

        # A build of the old catalogue with the same changes comes to the same.
        followed.build()
        assert _everything(sink) == _everything(expected)
