"""Verdicts of merge audits on pairs of development shops that were judged by hand (A12)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest

from index_mappings.generations import first_stamp
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from tests.rules.backends.asking import NOW, call
from tests.support.reference.backend import ReferenceBackend

pytestmark = [pytest.mark.dev_data, pytest.mark.rule("A12")]


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
