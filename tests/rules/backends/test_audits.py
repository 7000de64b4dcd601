"""An audit of two shops that may be one: evidence, verdict, effects, and candidates for a single shop (A12)."""

from typing import Any, Final

import pytest

from service.errors import InvalidInputError, ShopNotFoundError
from service.tools.find_shop import FIND_SHOP
from service.tools.get_shop import GET_SHOP
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from shop_directory.search.protocol import Snapshot
from tests.rules.backends.asking import call
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import coupon, offer, redirect, shop

KINDS: Final = [
    "registrable_domain", "main_label", "name_similarity", "shared_alias", "stated_redirect", "categories", "markets",
]  # fmt: skip


@pytest.mark.rule("F17", "A12")
async def test_an_audit_shows_shops_as_a_search_does_but_for_their_offers(directory: Directory) -> None:
    world = await directory(
        shop("Nord", id="s1"), shop("Nord Sud", id="s2", aliases=["Nord"]), offers=[offer("o1", "s1")]
    )
    (nord, sud) = [{**view, "offers": ()} for view in (await call(world, FIND_SHOP, query="nord"))["results"]]
    pair = await call(world, RESOLVE_CONFLICT, from_shop_id="s1", to_shop_id="s2")
    assert (pair["from"], pair["to"], pair["from"]["offers_total"]) == (nord, sud, 1)
    audits = await call(world, RESOLVE_CONFLICT, from_shop_id="s2")
    assert (audits["from"], [audit["to"] for audit in audits["candidates"]]) == (sud, [nord])


@pytest.mark.rule("A12", "V2", "I6")
async def test_an_audit_says_which_of_its_references_is_of_no_shop(directory: Directory) -> None:
    world = await directory(
        shop("Nord", "nord.internal", id="s1"), shop("Hidden", id="hidden", visibility="under_review")
    )
    absent = "The directory has no shop with this id or domain."
    named = f"{absent} To look up a shop by name, call find_shop."
    for references, detail in (
        (("nobody.internal", "hidden.internal"), absent),
        (("nobody", "hidden", "!"), named),
        (
            ("sub.nobody.internal", "sub.hidden.internal"),
            f"{absent} A subdomain is not looked up as its parent domain.",
        ),
    ):
        for reference in references:
            for field, other in (("from_shop_id", "to_shop_id"), ("to_shop_id", "from_shop_id")):
                asked: dict[str, Any] = {field: reference, other: "s1"}
                with pytest.raises(ShopNotFoundError) as refused:
                    await call(world, RESOLVE_CONFLICT, **asked)
                assert refused.value.detail == f"{field}: {detail}"


async def _audit(directory: Snapshot, start: str, end: str | None = None) -> dict[str, Any]:
    return await call(directory, RESOLVE_CONFLICT, from_shop_id=start, to_shop_id=end)


def _agreeing(audit: dict[str, Any]) -> set[str]:
    assert [piece["kind"] for piece in audit["evidence"]] == KINDS
    return {piece["kind"] for piece in audit["evidence"] if piece["agrees"]}


def _candidates(answer: dict[str, Any]) -> list[str]:
    return [audit["to"]["id"] for audit in answer["candidates"]]


@pytest.mark.rule("A12", "I66")
async def test_a_pair_is_shown_with_both_shops_evidence_effects_and_verdict(directory: Directory) -> None:
    world = await directory(
        shop("Nord", "nord.de", id="s1", categories=["a", "b"], countries=["DE"], aliases=["Nordlicht"]),
        shop("Nordlicht", "nord.co.uk", id="s2", categories=["b"], countries=["DE", "GB"]),
        shop("Third", "third.internal", id="s3", categories=["b"]),
        coupons=[
            coupon("SAVE", "s1"),
            coupon("ONE", "s1"),
            coupon("one", "s1"),
            coupon("save", "s2"),
            coupon("Two", "s2", valid_until="2001-01-01"),
            coupon("SAVE", "s3"),
        ],
        offers=[offer("o1", "s1"), offer("o2", "s2"), offer("o3", "s2"), offer("o4", "s3")],
        redirects=[redirect("www.nord.co.uk", "nord.de", observed_at="2031-05-06T07:08:09Z")],
    )
    answer = await _audit(world, "s1", "https://www.nord.co.uk/x")
    assert list(answer) == ["from", "to", "evidence", "effects", "verdict"]
    for field, reference in (("from", "s1"), ("to", "s2")):
        whole = await call(world, GET_SHOP, shop_domain=reference)
        assert {**answer[field], "offers": ()} == {**whole, "offers": ()}
    assert _agreeing(answer) == {"main_label", "shared_alias", "stated_redirect", "categories", "markets"}
    assert {piece["kind"]: piece["detail"] for piece in answer["evidence"]} == {
        "registrable_domain": "nord.de and nord.co.uk",
        "main_label": "nord and nord",
        "name_similarity": "names are 62% alike",
        "shared_alias": "shared names: nordlicht",
        "stated_redirect": "nord.co.uk leads to nord.de, seen 2031-05-06T07:08:09Z",
        "categories": "shared categories: b",
        "markets": "shared markets: DE",
    }
    assert (answer["effects"], answer["verdict"]) == ({"coupons": 5, "offers": 3, "duplicate_codes": 1}, "likely_same")
    back = await _audit(world, "s2", "s1")
    assert (_agreeing(back), back["effects"], back["verdict"]) == (_agreeing(answer), answer["effects"], "likely_same")
    apart = await _audit(world, "s1", "s3")
    assert (_agreeing(apart), apart["verdict"]) == ({"categories"}, "likely_different")
    assert apart["effects"] == {"coupons": 4, "offers": 2, "duplicate_codes": 1}


@pytest.mark.rule("A12", "M11.other_lists")
async def test_candidates_share_a_domain_part_a_name_or_a_redirect_and_come_by_verdict_then_by_most_evidence(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Nord", "nord.de", id="s1", categories=["a"], aliases=["Nordlicht"]),
        shop("Shop of Nord", "shop.nord.de", id="sub", categories=["b"]),
        shop("Nord", "nord.fr", id="twin", categories=["a"]),
        shop("Nordlicht", "licht.internal", id="alias", categories=["b"], popularity=5),
        shop("Label", "nord.co.uk", id="label", categories=["b"], popularity=1),
        shop("Hyphen", "no-rd.internal", id="hyphen", categories=["b"]),
        shop("Moved", "moved.internal", id="moved", categories=["b"], popularity=9),
        shop("Other", "other.internal", id="other", categories=["a"], popularity=99),
        shop("Alder", "twi-g.internal", id="alder", categories=["c"]),
        shop("Birch", "t-wig.example", id="birch", categories=["d"]),
        shop("The Fern", "twice.internal", id="article", categories=["c"]),
        shop("Fern", "once.example", id="fern", categories=["d"]),
        shop("Nord", "nord.es", id="hidden", categories=["a"], visibility="under_review"),
        shop("Gone", "gone.internal", id="gone", visibility="removed"),
        coupons=[coupon("A", "s1"), coupon("a", "twin")],
        redirects=[redirect("moved.internal", "nord.de"), redirect("nord.de", "gone.internal")],
    )
    answer = await _audit(world, "nord.de")
    assert list(answer) == ["from", "candidates"]
    # The one that is likely the same; then four pieces, two, and one each in the order of popularity.
    assert _candidates(answer) == ["moved", "twin", "sub", "alias", "label", "hyphen"]
    assert [len(_agreeing(audit)) for audit in answer["candidates"]] == [1, 4, 2, 1, 1, 1]
    assert [audit["verdict"] for audit in answer["candidates"]] == ["likely_same", *["insufficient_evidence"] * 5]
    assert [audit["effects"]["duplicate_codes"] for audit in answer["candidates"]] == [0, 1, 0, 0, 0, 0]
    assert (await _audit(world, "other"))["candidates"] == ()
    # Nothing but the main labels without their hyphens, or the names without their article, ties these two.
    for one, other in (("alder", "birch"), ("article", "fern")):
        assert [_candidates(await _audit(world, start)) for start in (one, other)] == [[other], [one]]


@pytest.mark.rule("A12")
async def test_at_most_ten_candidates_are_shown_the_best_of_all(directory: Directory) -> None:
    twins = [shop("Nord", f"n{n}.internal", id=f"t{n:02}", popularity=n, categories=["b"]) for n in range(15)]
    best = shop("Nord", "nord.fr", id="best", categories=["b"])
    world = await directory(shop("Nord", "nord.de", id="s1", categories=["a"]), *twins, best)
    assert _candidates(await _audit(world, "s1")) == ["best", *(f"t{n:02}" for n in range(14, 5, -1))]


@pytest.mark.rule("M11.other_lists", "A12")
@pytest.mark.parametrize("twins", [3, 210], ids=["few", "more than are compared"])
async def test_candidates_on_a_crowded_domain_come_behind_a_likely_one(directory: Directory, twins: int) -> None:
    # By name and domain alone each twin would be likely the same; the crowding shop is the last of all.
    world = await directory(
        shop("Nord", "nord.de", id="s1"),
        *(shop("Nord", f"n{n}.nord.de", id=f"t{n:03}", popularity=1) for n in range(twins)),
        shop("Moved", "moved.internal", id="moved", popularity=0),
        shop("Quelle", "quelle.nord.de", id="quelle", popularity=0),
        redirects=[redirect("moved.internal", "nord.de")],
    )
    found = [(audit["to"]["id"], audit["verdict"]) for audit in (await _audit(world, "s1"))["candidates"]]
    assert found[:3] == [
        ("moved", "likely_same"), ("t000", "insufficient_evidence"), ("t001", "insufficient_evidence"),
    ]  # fmt: skip


@pytest.mark.rule("A12")
async def test_a_likely_candidate_is_shown_behind_more_popular_ones_than_are_compared(directory: Directory) -> None:
    world = await directory(
        shop("Nord", "nord.de", id="s1"),
        *(shop("Nord", f"n{n}.internal", id=f"t{n:03}", popularity=1) for n in range(210)),
        shop("Moved", "moved.internal", id="moved", popularity=0),
        shop("NORD", "shop.nord.de", id="twin", popularity=0),
        redirects=[redirect("moved.internal", "nord.de")],
    )
    found = [(audit["to"]["id"], audit["verdict"]) for audit in (await _audit(world, "s1"))["candidates"]]
    assert found[:3] == [("twin", "likely_same"), ("moved", "likely_same"), ("t000", "insufficient_evidence")]


@pytest.mark.rule("A12", "V2", "I6", "V1.dependents")
async def test_an_absent_shop_is_not_found_on_either_side_and_the_same_shop_twice_is_refused(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Nord", "nord.de", id="s1"),
        shop("Hidden", "hidden.internal", id="h", visibility="under_review"),
        redirects=[redirect("hidden.internal", "nord.de")],
    )
    for reference in ("h", "hidden.internal", "nobody", "nobody.internal", "!"):
        for pair in ((reference, None), (reference, "s1"), ("s1", reference)):
            with pytest.raises(ShopNotFoundError):
                await _audit(world, *pair)
    for same in ("s1", "https://www.nord.de/"):
        with pytest.raises(InvalidInputError, match="invalid_input") as error:
            await _audit(world, "nord.de", same)
        (fault,) = error.value.errors
        assert (fault.field, fault.message) == (
            "to_shop_id",
            "refers to the same shop as from_shop_id; name another shop, or leave it out to look for candidates",
        )
    assert (await _audit(world, "s1"))["candidates"] == ()


@pytest.mark.rule("A12")
async def test_effects_are_exact_for_more_codes_than_one_look_takes(directory: Directory) -> None:
    world = await directory(
        shop("Nord", id="s1"),
        shop("Sud", id="s2"),
        coupons=[
            *(coupon(f"C{n}", "s1") for n in range(1_205)),
            *(coupon(f"c{n}", "s2", id=f"s2-{n}") for n in range(3, 1_300, 2)),
        ],
    )
    effects = (await _audit(world, "s1", "s2"))["effects"]
    assert effects == {"coupons": 1_205 + 649, "offers": 0, "duplicate_codes": 601}


@pytest.mark.rule("A12")
async def test_a_third_shop_without_the_name_on_the_domain_of_a_pair_leaves_the_evidence_insufficient(
    directory: Directory,
) -> None:
    # The third one has the pair's name only as its domain, or transliterated: that is not what its source states.
    third = shop("Quelle", "quelle.nord.de", id="third")
    pair = [shop("Nord", "nord.de", id="s1"), shop("NORD", "shop.nord.de", id="s2")]
    same_name = shop("Nordlicht", "licht.nord.de", id="s3", aliases=["Nord"])
    transliterated = shop("Норд", "ru.nord.de", id="s4")
    elsewhere = shop("Quelle", "nord.fr", id="s5")
    hidden = shop("Quelle", "hidden.nord.de", id="h", visibility="under_review")
    plain = "nord.de and nord.de"
    crowded = f"{plain}; a shop of another name is on it too"
    for others, expected, detail in (
        ([], "likely_same", plain),
        ([same_name, elsewhere, hidden], "likely_same", plain),
        ([same_name, third], "insufficient_evidence", crowded),
        ([transliterated], "insufficient_evidence", crowded),
    ):
        world = await directory(*pair, *others)
        for start, end in (("s1", "s2"), ("s2", "s1")):
            audit = await _audit(world, start, end)
            assert (audit["verdict"], audit["evidence"][0]["detail"]) == (expected, detail)
        found = {one["to"]["id"]: one["verdict"] for one in (await _audit(world, "s1"))["candidates"]}
        assert found["s2"] == expected


@pytest.mark.rule("A12")
async def test_a_third_shop_is_found_behind_more_shops_of_the_name_than_one_look_takes(directory: Directory) -> None:
    many = [shop("Nord", f"n{n}.nord.de", id=f"s{n:03}", popularity=1) for n in range(60)]
    world = await directory(*many, shop("Quelle", "quelle.nord.de", id="last", popularity=0))
    assert (await _audit(world, "s000", "s001"))["verdict"] == "insufficient_evidence"
    world = await directory(*many)
    assert (await _audit(world, "s000", "s001"))["verdict"] == "likely_same"
