"""Names as real shops have them: short, in digits, in punctuation, in any script; each is found first as it is typed.

Most of them break a search that was made for words of one script (X1, X2, M9).
"""

from typing import Final

import pytest

from service.search.protocol import Snapshot
from tests.rules.backends.asking import find, names, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

# Each name with what else the rules promise to understand as the whole of it: without punctuation and joined, with
# "and" for & and +, apostrophes of any kind or none, umlauts spelt out, in Latin letters, and by the main label.
_TYPED: Final[dict[str, tuple[str, ...]]] = {
    "A1": (),
    "O2": (),
    "EE": (),
    "e&": ("e", "e and", "eand"),
    "ゲオ": ("geo", "ゲオ"),
    "쿠팡": ("kupang",),
    "Marks & Spencer": ("marks spencer", "marks and spencer", "marks+spencer", "marksspencer", "Marks&Spencer"),
    "A&O": ("a o", "ao", "a and o", "a+o"),
    "Stewart's Shops": ("stewarts shops", "stewart´s shops", "Stewart’s Shops", "stewartsshops"),
    "Tambo+": ("tambo", "tambo and"),
    "K+K": ("k k", "kk", "k&k", "k and k"),
    "C!ty'super": ("c ty super", "c!tysuper", "ctysuper", "c!ty´super"),
    "!Xtend-Life": ("xtend life", "xtendlife", "xtend-life"),
    "AM:PM": ("am pm", "ampm", "am/pm"),
    "V.I.M.": ("v i m", "vim", "v.i.m"),
    "niko and ...": ("niko and", "nikoand", "niko and…", "niko and..."),
    "Шар@": ("шар", "ШАР", "shar"),
    "Jumbo [AR]": ("jumbo ar", "jumboar", "Jumbo (AR)"),
    "Youla / Юла": ("youla юла", "youlaюла", "Youla - Юла"),
    "1083": (),
    "36,6": ("36 6", "366", "36.6"),
    "10-11": ("10 11", "1011", "10/11"),
    "CDON.com": ("cdon com", "cdon", "www.cdon.com", "https://cdon.com/"),
    "ÖoB": ("öob.se", "xn--ob-eka.se", "oob", "oeob", "O\u0308ob"),
    "401 Games": ("401games", "store.401games.ca", "HTTPS://store.401games.ca/cart"),
    "PulseUniform - Nursing Uniforms, Medical Scrubs": ("pulseuniform nursing uniforms medical scrubs",),
}
_DOMAINS: Final = {"CDON.com": "cdon.com", "ÖoB": "öob.se", "401 Games": "store.401games.ca"}
# What begins like some of the names, far more popular: an exact name comes first all the same.
_CROWD: Final = (
    "A1 Print", "O2O Market", "Eel", "Energy", "Marks & Spencer Food", "Tambour", "Vimto", "Jumbo Area", "10-1178",
    "CDON Fashion", "Sharp", "1083 Goods", "Kkday", "Aoki", "Geometry", "Nikon Andes", "3665", "Oobleck", "Ampm Café",
)  # fmt: skip


async def _world(directory: Directory, *crowd: str) -> Snapshot:
    known = [shop(name, _DOMAINS.get(name), id=f"shop_{number}") for number, name in enumerate(_TYPED)]
    return await directory([*known, *(shop(name, popularity=9) for name in crowd)])


async def _first(world: Snapshot, typed: str) -> tuple[str | None, str | None]:
    """The first of a search and of the suggestions."""
    found, suggested = await find(world, typed), await suggest(world, typed, limit=1)
    assert found.ignored == (), typed
    return next(iter(names(found.shops)), None), next((first.shop.name for first in suggested.shops), None)


def _without_punctuation(name: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in name.replace("'", "")).split())


@pytest.mark.rule("X1", "X2", "M4", "M9")
async def test_a_name_typed_exactly_in_lower_case_or_without_punctuation_is_first(directory: Directory) -> None:
    world = await _world(directory, *_CROWD)
    for name in _TYPED:
        for typed in (name, name.lower(), name.upper(), f"  {name} ", _without_punctuation(name)):
            assert await _first(world, typed) == (name, name), typed


@pytest.mark.rule("X1", "X2", "X3", "M4", "M9")
async def test_a_name_is_first_by_each_other_way_to_type_it(directory: Directory) -> None:
    world = await _world(directory, *_CROWD)
    for name, ways in _TYPED.items():
        for typed in ways:
            assert await _first(world, typed) == (name, name), typed


@pytest.mark.rule("X2.keys", "M9", "I69")
async def test_a_name_is_suggested_by_its_beginning_and_by_each_of_its_words(directory: Directory) -> None:
    world = await _world(directory)
    begun = {
        "ゲ": "ゲオ", "쿠": "쿠팡", "spenc": "Marks & Spencer", "stewart": "Stewart's Shops", "c!t": "C!ty'super",
        "!xt": "!Xtend-Life", "life": "!Xtend-Life", "am:p": "AM:PM", "v.i": "V.I.M.", "niko and .": "niko and ...",
        "ша": "Шар@", "юла": "Youla / Юла", "you": "Youla / Юла", "36,": "36,6", "401g": "401 Games",
        "scrubs": "PulseUniform - Nursing Uniforms, Medical Scrubs", "store.401": "401 Games", "xn--ob": "ÖoB",
    }  # fmt: skip
    found = {typed: [found.shop.name for found in (await suggest(world, typed)).shops] for typed in begun}
    assert {typed: name for typed, (name, *_) in found.items()} == begun


@pytest.mark.rule("M1", "M2")
async def test_shops_of_one_name_all_come_first_the_most_popular_ahead(directory: Directory) -> None:
    world = await directory(
        [
            shop("Coop", "coop.internal", id="c1", popularity=0.5),
            shop("Coop", "coop-two.internal", id="c2", popularity=0.75),
            shop("COOP", "co-op.internal", id="c3"),
            shop("Coop Forum", id="c4", popularity=9),
            shop("Jumbo", "jumbo.internal", id="j1", popularity=0.5),
            shop("Jumbo [AR]", id="j2", popularity=9, countries=["AR"]),
        ]
    )
    for typed, expected in (("coop", ["c2", "c1", "c3", "c4"]), ("jumbo", ["j1", "j2"])):
        assert [found.id for found in (await find(world, typed)).shops] == expected
    # Of so few characters only one shop is ahead of better-known names that begin so.
    for typed, expected in (("coop", ["c2", "c4", "c1", "c3"]), ("jumbo", ["j1", "j2"])):
        assert [found.shop.id for found in (await suggest(world, typed)).shops] == expected
