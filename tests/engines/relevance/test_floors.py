"""The floors under the quality of answers on the development data, which are the same on both engines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest

from bench.typeahead.corpus import write_corpus
from bench.typeahead.quality import judged as judged_by
from index_mappings.documents import Shop
from index_mappings.generations import first_stamp
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.sink import EmbeddedSink
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from shop_directory.search.embedded.engine import EmbeddedBackend
from shop_directory.search.protocol import SearchBackend
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.relevance.development import Report, embedded_engine, measure, measure_wishes, wishes_catalogue
from tests.engines.relevance.typing import measure_typing
from tests.rules.backends.asking import NOW, call, walked
from tests.rules.backends.test_matching_cases import WISHES, wrong_answers
from tests.support.catalogues import build_into
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import opensearch_world

_SUGGEST_8: Final = {
    "prefix": 0.99, "exact_name": 0.99, "typo_prefix": 0.97, "diacritic": 0.99, "native_script": 0.99,
    "domain_fragment": 0.99, "multiword": 0.99, "name+category": 0.97, "real_variant": 0.94,
}  # fmt: skip
_FIND_8: Final = {"exact_name": 0.97, "multiword": 0.97, "name+category": 0.97, "domain_fragment": 0.97}
# The figure that typing gives today, with a little room: a change that costs keystrokes is to be noticed.
_KEYSTROKES: Final = 2.55


def _assert_floors(report: Report) -> None:
    assert {kind: report.suggest[kind].success_8 for kind, floor in _SUGGEST_8.items()
            if report.suggest[kind].success_8 < floor} == {}  # fmt: skip
    assert report.suggest["exact_name"].success_1 >= 0.97
    assert {kind: report.find[kind].success_8 for kind, floor in _FIND_8.items()
            if report.find[kind].success_8 < floor} == {}  # fmt: skip
    assert report.keystrokes <= _KEYSTROKES


@pytest.mark.rule("I69", "I5", "F7", "M3.wishes", "M5.stems")
@pytest.mark.dev_data
@pytest.mark.opensearch
@pytest.mark.timeout(600)
async def test_both_engines_answer_the_development_queries_equally_and_above_the_floors(
    dev_data: Path, opensearch_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes over half a minute: a floor of 0.97 needs all queries of a kind, and each is asked of both engines."""
    # As `make relevance` measures, which has no test run's quotas.
    monkeypatch.delenv("SHOP_DIRECTORY_QUOTA_ANONYMOUS")
    async with embedded_engine(dev_data / "dev-shops.ndjson", tmp_path) as backend:
        embedded = await _answers(backend, dev_data)
    async with opensearch_world(opensearch_url, dev_data / "dev-shops.ndjson") as backend:
        opensearch = await _answers(backend, dev_data)
    _assert_floors(embedded.report)
    assert embedded.wrong_wishes == []
    assert opensearch == embedded


class _Answers(NamedTuple):
    report: Report
    pages: list[list[Shop]]
    wrong_wishes: list[str]


async def _answers(backend: SearchBackend, dev_data: Path) -> _Answers:
    wrong = await wrong_answers(await backend.snapshot(), WISHES["development"]["cases"])
    return _Answers(await measure(backend, dev_data), await _all_pages(backend), wrong)


async def _all_pages(backend: SearchBackend) -> list[list[Shop]]:
    """All matches of searches for much, page by page (F7)."""
    snapshot = await backend.snapshot()
    return [await walked(snapshot, text, country=country) for text in ("", "s", "shop") for country in (None, "DE")]


_INVENTED: Final = 20_000
# A little under what is measured today; decision 23 has the figures, docs/performance.md those among 100,000.
_SUCCESS_8: Final = {
    "prefix": 0.95, "typo_prefix": 0.94, "exact_name": 0.99, "domain_fragment": 0.98, "multiword": 0.985,
    "name+category": 0.98, "diacritic": 0.985, "native_script": 0.98, "real_variant": 0.93, "3 characters": 0.81,
    "4 characters": 0.93, "5 characters": 0.955, "typo in seven": 0.935,
}  # fmt: skip
_SUCCESS_1: Final = {
    "exact_name": 0.99, "domain_fragment": 0.93, "name+category": 0.99, "multiword": 0.89, "real_variant": 0.82,
    "prefix": 0.64, "native_script": 0.87, "diacritic": 0.93, "3 characters": 0.36, "5 characters": 0.71,
}  # fmt: skip
_MIXED_KEYSTROKES: Final = 3.3


@pytest.mark.rule("M9.quality")
@pytest.mark.dev_data
@pytest.mark.timeout(300)
async def test_among_20_000_others_the_sought_shop_is_among_eight_in_the_share_that_each_class_sets(
    dev_data: Path, tmp_path: Path
) -> None:
    build_into(EmbeddedSink(tmp_path / "index"), write_corpus(tmp_path / "mixed.ndjson", dev_data, _INVENTED))
    backend = EmbeddedBackend(tmp_path / "index")
    snapshot = await backend.snapshot()

    def ask(q: str, country: str | None, limit: int) -> list[str]:
        return [found.shop.id for found in snapshot.suggest(SuggestQuery.of(q, country, limit)).shops]

    judged = judged_by(ask, dev_data)
    await backend.close()
    assert set(judged.classes) == set(_SUCCESS_8)
    assert {kind: judged.classes[kind].success_8 for kind, floor in _SUCCESS_8.items()
            if judged.classes[kind].success_8 < floor} == {}  # fmt: skip
    assert {kind: judged.classes[kind].success_1 for kind, floor in _SUCCESS_1.items()
            if judged.classes[kind].success_1 < floor} == {}  # fmt: skip
    assert judged.keystrokes <= _MIXED_KEYSTROKES


# Of 161 wishes, by the words that the shipped categories have: fewer are wanted, never more.
_MOST_EMPTY: Final = 3
_MOST_WRONG: Final = 7


# A little under what is measured today (docs/performance.md): with a right category first, and among three.
_TYPED: Final = {
    "own, whole": (0.99, 1.0), "own, cut": (0.88, 0.98), "own, with shop": (0.97, 0.98),
    "other language, whole": (0.99, 1.0), "other language, cut": (0.89, 0.98),
    "other language, with shop": (0.98, 0.99), "synonym, whole": (0.97, 0.99), "synonym, cut": (0.83, 0.95),
    "synonym, with shop": (0.97, 0.99),
}  # fmt: skip
# Never more: categories shown a query for shops that none of the meant shops carries.
_WRONG: Final = {"prefix": 1.35, "exact_name": 0.3, "multiword": 0.5, "typo_prefix": 0.15, "real_variant": 0.3}


@pytest.mark.rule("I5", "M3.wishes", "M5", "M4.one_word", "M10")
@pytest.mark.dev_data
@pytest.mark.opensearch
@pytest.mark.timeout(300)
async def test_few_wishes_are_misunderstood_and_categories_are_suggested_by_their_names(
    dev_data: Path, opensearch_url: str, tmp_path: Path
) -> None:
    """Few wishes find nothing or a shop of another category first; few categories are shown for names of shops."""
    catalogue = wishes_catalogue(dev_data, tmp_path / "catalogue")
    async with embedded_engine(catalogue, tmp_path / "index") as backend:
        wishes, typing = await measure_wishes(backend, dev_data), await measure_typing(backend, dev_data)
    async with opensearch_world(opensearch_url, catalogue) as backend:
        assert await measure_typing(backend, dev_data) == typing
    assert wishes.queries == 161
    assert len(wishes.empty) <= _MOST_EMPTY, wishes.empty
    assert len(wishes.wrong) <= _MOST_WRONG, wishes.wrong
    below = {
        kind: one for kind, one in typing.names.items() if one.first < _TYPED[kind][0] or one.three < _TYPED[kind][1]
    }
    assert below == {}
    assert {kind: mean for kind, mean in typing.wrong.items() if mean > _WRONG[kind]} == {}
    assert (set(typing.names), set(typing.wrong)) == (set(_TYPED), set(_WRONG))


class _Pair(NamedTuple):
    """Two shops by their ids, whether somebody who knows both would merge them, and the verdict by the rules."""

    first: str
    second: str
    judged: Literal["same", "different"]
    verdict: str


_UNSURE: Final = "insufficient_evidence"
_JUDGED: Final = (
    # One domain and two names: sometimes one company twice, mostly two brands or two countries of a group.
    _Pair("shop_66730d6ba3e8", "shop_543b3cf566aa", "same", _UNSURE),
    _Pair("shop_3df5e8deefb3", "shop_64cb11de9207", "same", _UNSURE),
    _Pair("shop_6d0e52028560", "shop_155c416a3134", "same", _UNSURE),
    _Pair("shop_d3b55d203d02", "shop_296b2d39cdf8", "same", _UNSURE),
    _Pair("shop_150f34f6adab", "shop_0dd71a4ec0ba", "different", _UNSURE),
    _Pair("shop_04a6da9aa663", "shop_676f88263196", "different", _UNSURE),
    _Pair("shop_226d61441e8a", "shop_eb3dd2b418be", "different", _UNSURE),
    _Pair("shop_b312a00bf3b6", "shop_19ff6128c243", "different", _UNSURE),
    _Pair("shop_a059cb3d311d", "shop_4ddc4ff80764", "different", _UNSURE),
    _Pair("shop_fd04364b954e", "shop_089284e1e681", "different", _UNSURE),
    _Pair("shop_c9ac2e85e36e", "shop_442ed93c7747", "different", _UNSURE),
    # One main label under several suffixes, most with one name too.
    _Pair("shop_0368d38a0c7e", "shop_bea55c6f7542", "different", _UNSURE),
    _Pair("shop_1207abb7743b", "shop_14790ea326d3", "different", _UNSURE),
    _Pair("shop_29819ffa13ee", "shop_5360ed421454", "different", _UNSURE),
    _Pair("shop_1311841756a1", "shop_f698d05dacbc", "different", _UNSURE),
    _Pair("shop_1802ac754282", "shop_a48857bf16a8", "different", _UNSURE),
    _Pair("shop_331ca35162a3", "shop_cb03ee77229b", "different", _UNSURE),
    _Pair("shop_5e42b0e31a6e", "shop_964537816d9e", "same", _UNSURE),
    # One name on domains that have nothing in common.
    _Pair("shop_19d2a70cde9c", "shop_e6a4612c05f2", "different", _UNSURE),
    _Pair("shop_bd2d4d0185f7", "shop_bd4e590c7cf7", "different", _UNSURE),
    _Pair("shop_23806edc6949", "shop_aeefe2559032", "different", _UNSURE),
    _Pair("shop_0fb7cffeff26", "shop_9495a1c7c8fa", "different", _UNSURE),
    _Pair("shop_3d85f65f31c1", "shop_6563723b2c25", "same", _UNSURE),
    _Pair("shop_28e989302192", "shop_b1309ce6b713", "same", _UNSURE),
    _Pair("shop_84b2f8299fd4", "shop_a9e6a771abf8", "same", _UNSURE),
    # Names that are at least 90% alike, and nothing else in common.
    _Pair("shop_0c26f29f1fd0", "shop_5f1ee3cf9610", "different", "likely_different"),
    _Pair("shop_3280cbee4ae7", "shop_dd58d76bf314", "different", "likely_different"),
    _Pair("shop_381e2782a32e", "shop_6d6313473157", "different", "likely_different"),
    _Pair("shop_7c18a2969e5f", "shop_92c2287d11d7", "different", "likely_different"),
    _Pair("shop_81231ba47d13", "shop_9a3d33ca1e50", "different", "likely_different"),
)


def _records(data: Path) -> Iterator[dict[str, Any]]:
    """The development shops, then the brands that share a domain with one of them."""
    for name in ("dev-shops.ndjson", "dev-brands-sharing-a-domain.ndjson"):
        for line in (data / name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            record.pop("shares_domain_with", None)
            yield record


@pytest.mark.dev_data
@pytest.mark.rule("A12")
async def test_judged_pairs_have_their_verdicts_and_no_verdict_contradicts_the_judgement(dev_data: Path) -> None:
    # A catalogue gives a domain to one shop; an audit is asked here of both, so they are projected without one.
    shops = [project_shop(ShopRecord.model_validate(record)) for record in _records(dev_data)]
    directory = ReferenceBackend(first_stamp("judged", NOW, None), {"shops": shops})
    found = []
    for pair in _JUDGED:
        for start, end in ((pair.first, pair.second), (pair.second, pair.first)):
            answer = await call(directory, RESOLVE_CONFLICT, from_shop_id=start, to_shop_id=end)
            found.append(_Pair(pair.first, pair.second, pair.judged, answer["verdict"]))
    assert len(_JUDGED) == 30
    assert found == [pair for pair in _JUDGED for _ in range(2)]
    wrong = {("same", "likely_different"), ("different", "likely_same")}
    assert [pair for pair in found if (pair.judged, pair.verdict) in wrong] == []
