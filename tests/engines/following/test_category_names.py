"""What a category is called follows the catalogue, and a category without a public shop reaches no engine (G3, V1)."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.sinks.protocol import GenerationEditor
from service.parts import open_search
from service.search.protocol import FindQuery, SuggestQuery
from tests.engines.conftest import Engine
from tests.engines.following.followed import BreakingEditor, FollowedIndex
from tests.support.catalogues import delete, shop, upsert
from tests.support.memory_sink import MemorySink

LAMP: Final = {**shop("Lamp", id="lamp", categories=["lighting"]), "version": 1}
OWL: Final = {**shop("Owl", id="owl", categories=["falconry"], visibility="under_review"), "version": 1}


def _named(version: int, slug: str, **names: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return upsert("categories", {"slug": slug, **names}, version)


def _categories(followed: FollowedIndex) -> dict[str, tuple[str, list[str]]]:
    """Display name and words by slug, as they are stored."""
    return {slug: (stored["name"], stored["words"]) for slug, stored in followed.scan()["categories"].items()}


@pytest.mark.rule("G3", "C1", "M5", "M10")
async def test_readers_find_the_new_names_after_one_micro_batch(engine: Engine, tmp_path: Path) -> None:
    followed = FollowedIndex(tmp_path, engine.sink, {"shops": [LAMP]})
    followed.build()
    backend = open_search(engine.settings)
    try:
        before = await (await backend.refresh()).find(FindQuery("leuchten", None, None, 0, 5))
        assert before.total == 0
        followed.append([_named(1, "lighting", name="Lamps", names={"de": "Leuchten"})])
        followed.step()
        async with asyncio.timeout(10):
            # The former typeahead answers until that of the new stamp is open.
            while (snapshot := await backend.refresh()).stamp.sequence < followed.live.sequence:
                await asyncio.sleep(0.05)
        found = await snapshot.find(FindQuery("leuchten", None, None, 0, 5))
        suggested = snapshot.suggest(SuggestQuery.of("leuct", None, 5))
        assert ([one.id for one in found.shops], [one.name for one in suggested.categories]) == (["lamp"], ["Lamps"])
    finally:
        await backend.close()


class _Recording(BreakingEditor):
    def __init__(self, editor: GenerationEditor) -> None:
        super().__init__(editor)
        self.slugs: set[str] = set()

    def write(self, kind: str, documents: Any, removed: Any) -> int:  # noqa: ANN401 - as of the editor
        if kind == "categories":
            self.slugs.update(document.id for document in documents)
            self.slugs.update(removed)
        return super().write(kind, documents, removed)


@pytest.mark.rule("V1", "G3")
def test_no_engine_receives_a_category_before_a_public_shop_carries_it(tmp_path: Path) -> None:
    followed = FollowedIndex(tmp_path, MemorySink(), {"shops": [LAMP, OWL]})
    followed.build()
    editors: list[_Recording] = []

    def around(editor: GenerationEditor) -> GenerationEditor:
        editors.append(_Recording(editor))
        return editors[-1]

    def step(*lines: dict[str, Any]) -> set[str]:
        followed.append(lines)
        with followed.follower(around) as follower:
            follower.step()
        return editors[-1].slugs

    assert step(_named(1, "falconry", names={"de": "Beizjagd"})) == set()
    assert step(_named(2, "falconry", names={"de": "Beizjagden"}), delete("categories", "nobody", 2)) == set()
    assert step(upsert("shops", {**OWL, "visibility": "public"}, 2)) == {"falconry"}
    assert _categories(followed)["falconry"] == ("Falconry", ["beizjagden", "falconry"])
    # Hiding the shop and naming its category in one micro-batch removes all of it.
    assert step(upsert("shops", OWL, 3), _named(3, "falconry", synonyms=["hawks"])) == {"falconry"}
    assert "falconry" not in _categories(followed)
    assert step(delete("categories", "falconry", 4)) == set()
