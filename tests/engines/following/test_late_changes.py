"""What was deleted stays so: no clock, no restart, no engine's forgetting and no old catalogue brings it back (G3).

OpenSearch forgets a deleted document's version after a while, and all of them when an index is closed. The order is
decided by the state, which forgets nothing.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP, index_name
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import coupon, offer, shop
from tests.support.changes import delete, upsert

LAMP = shop("Lamp", "lamp.internal", id="lamp", categories=["lamps"])
MOSS = shop("Moss", "moss.internal", id="moss", categories=["garden"])
CATALOGUE = {
    "shops": [{**LAMP, "version": 1}, {**MOSS, "version": 1}],
    "coupons": [coupon("LIGHT", "lamp", id="c1", version=1), coupon("GREEN", "moss", id="c2", version=1)],
    "offers": [offer("o1", "lamp", version=1)],
}
MOSS_ALONE = {"shops": {"moss"}, "categories": {"garden"}, "coupons": {"c2"}, "offers": set[str](), "facts": {"moss"}}
BOTH = {
    "shops": {"lamp", "moss"},
    "categories": {"garden", "lamps"},
    "coupons": {"c1", "c2"},
    "offers": {"o1"},
    "facts": {"lamp", "moss"},
}


def _ids(followed: FollowedIndex) -> dict[str, set[str]]:
    return {kind: set(documents) for kind, documents in followed.scan().items()}


def _built(engine: Engine, folder: Path) -> FollowedIndex:
    followed = FollowedIndex(folder / "followed", engine.sink, CATALOGUE)
    followed.build()
    assert _ids(followed) == BOTH
    return followed


def _assert_a_newer_upsert_brings_it_back(followed: FollowedIndex) -> None:
    followed.append([upsert("shops", LAMP, 6)])
    assert (followed.step().applied, _ids(followed)) == (1, BOTH)


@pytest.mark.rule("G3")
def test_an_older_upsert_after_a_delete_changes_nothing_however_much_later_it_comes(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _built(engine, tmp_path)
    followed.append([delete("shops", "lamp", 5)])
    assert (followed.step().applied, _ids(followed)) == (1, MOSS_ALONE)
    for later, version in ((timedelta(), 4), (timedelta(hours=1), 5), (timedelta(days=4_000), 2)):
        followed.append([upsert("shops", LAMP, version)])
        with followed.follower(clock=lambda later=later: datetime.now(UTC) + later) as follower:  # type: ignore[misc]
            done = follower.step()
        assert (done.applied, done.older, _ids(followed)) == (0, 1, MOSS_ALONE)
    _assert_a_newer_upsert_brings_it_back(followed)


@pytest.mark.opensearch
@pytest.mark.rule("G3")
def test_an_index_that_forgot_its_deletes_and_was_closed_does_not_take_an_older_upsert(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, tmp_path: Path
) -> None:
    followed = _built(opensearch_engine, tmp_path)
    names = [index_name(opensearch_location.prefix, kind, followed.live.generation) for kind in (*DOCUMENTS, STAMP)]
    with OpenSearch([opensearch_location.url], timeout=30) as client:
        client.indices.put_settings(index=",".join(names), body={"index.gc_deletes": "0s"})
        followed.append([delete("shops", "lamp", 5)])
        assert (followed.step().applied, _ids(followed)) == (1, MOSS_ALONE)
        client.indices.close(index=",".join(names))
        client.indices.open(index=",".join(names))
        client.cluster.health(index=",".join(names), params={"wait_for_status": "yellow"})
    followed.append([upsert("shops", LAMP, 4)])
    done = followed.step()
    assert (done.applied, done.older, _ids(followed)) == (0, 1, MOSS_ALONE)
    _assert_a_newer_upsert_brings_it_back(followed)


@pytest.mark.rule("G3")
def test_a_build_of_an_old_catalogue_does_not_undo_a_delete_even_when_the_changes_are_gone(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _built(engine, tmp_path)
    followed.append([delete("shops", "lamp", 5)])
    followed.step()
    followed.build()
    assert _ids(followed) == MOSS_ALONE
    followed.changes.unlink()
    for _ in range(2):  # the second one remembers what the first one took over
        followed.build()
        assert _ids(followed) == MOSS_ALONE
    followed.append([upsert("shops", LAMP, 4)])
    assert (followed.step().older, _ids(followed)) == (1, MOSS_ALONE)
    _assert_a_newer_upsert_brings_it_back(followed)
