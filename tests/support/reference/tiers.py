"""The tiers of one shop for one query, in their simplest form, for the reference backend."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import OSA

from index_mappings.category_forms import Level
from index_mappings.countries import country_names
from index_mappings.documents import ANY_MARKET, WORLDWIDE, ShopDocument
from index_mappings.forms import QueryForms
from index_mappings.hosts import country_of
from index_mappings.ngrams import is_part_evidence
from index_mappings.table_words import TABLE_WORDS
from index_mappings.text import is_ideographic
from index_mappings.tiers import (
    FIXED_FROM,
    HALF_MIN,
    NAMED_PART,
    ONE_SHOP_MAX,
    ONE_TYPO_MIN,
    OTHER_LANGUAGE_MIN,
    OVERLAP_WORDS,
    SYNONYM_MIN,
    TWO_TYPOS_MIN,
    FindTier,
    SuggestTier,
)
from service.search.categories import WordMeaning
from service.search.query_words import FindForms, QueryWord

# By word, the slugs of the categories that it means.
Slugs = dict[str, frozenset[str]]


def sells_in(shop: ShopDocument, country: str | None) -> bool:
    """Whether a shop passes a country's filter; one that states no market does (M7)."""
    return country is None or country in shop.markets or ANY_MARKET in shop.markets


def is_known_to_sell_in(shop: ShopDocument, country: str | None) -> bool:
    """Whether a shop is known to sell in a country, which comes before unknown (M4, M9.country)."""
    return country is None or country in shop.markets or WORLDWIDE in shop.markets


def suggested_shops(
    shops: Iterable[ShopDocument], query: QueryForms, slugs: Slugs, country: str | None
) -> list[tuple[int, ShopDocument]]:
    """All shops that /suggest finds, with their tiers, in order (M9, M1); `shops` are all, in order of rank."""
    passing = [shop for shop in shops if sells_in(shop, country)]
    leader = next((shop for shop in passing if _leads(shop, query, country)), None)
    ranked: list[tuple[int, ShopDocument]] = []
    for shop in passing:
        may_lead = len(query.spaced) > ONE_SHOP_MAX or shop is leader
        tier = suggest_tier(shop, query, slugs, country, may_lead=may_lead)
        if tier is not None:
            ranked.append((tier, shop))
    if query.words and all(tier < SuggestTier.ONE_TYPO for tier, _ in ranked):
        # Two typing errors count only if every found shop matches just a part of the query.
        two_typos = [shop for shop in passing if typo_tier(shop, query)]
        others = [(tier, shop) for tier, shop in ranked if shop not in two_typos]
        ranked = [*((SuggestTier.TWO_TYPOS, shop) for shop in two_typos), *others]
    ranked.sort(key=lambda found: (-found[0], found[1].rank))
    return ranked


def suggest_tier(
    shop: ShopDocument, query: QueryForms, slugs: Slugs, country: str | None = None, *, may_lead: bool = True
) -> int | None:
    """The tier of /suggest (M9), without that of two typing errors, of a shop that passes the filter by country.

    Without `may_lead` it is not in the first tier, in which a short query has one shop only.
    """
    known = is_known_to_sell_in(shop, country)
    if not query.texts:
        return SuggestTier.HALF_OF_WORDS
    if any(text in shop.names for text in query.texts):
        tier = SuggestTier.EQUALS_NAME if may_lead else SuggestTier.BEGINS_NAME
        return tier if known else tier - 1
    if any(text in shop.full for text in query.texts) or any(
        _begins_by_half(name, text) for name in shop.leading for text in query.texts
    ):
        return SuggestTier.BEGINS_NAME if known else SuggestTier.BEGINS_FORM
    keys = _prefix_candidates(shop.keys, shop, query)
    if known and (
        any(text in keys for text in query.texts)
        or any(full.startswith(query.texts) for full in _prefix_candidates(shop.full, shop, query))
    ):
        return SuggestTier.BEGINS_FORM
    if any(key.startswith(query.texts) for key in keys):
        return SuggestTier.WORDS
    if not query.words:
        return None
    if (by_words := _word_order_tier(shop, query.words, slugs)) is not None:
        return by_words
    if typo_tier(shop, query) == SuggestTier.ONE_TYPO:
        return SuggestTier.ONE_TYPO
    return overlap_tier(shop, query.words)


def _leads(shop: ShopDocument, query: QueryForms, country: str | None) -> bool:
    """Whether a shop is a candidate for the first tier of a short query, which has only the best one (M9)."""
    return is_known_to_sell_in(shop, country) and any(text in shop.names for text in query.texts)


def _prefix_candidates(texts: Iterable[str], shop: ShopDocument, query: QueryForms) -> tuple[str, ...]:
    """Full forms or keys that may match by prefix; those of left labels only if the query has a dot (M9)."""
    return tuple(text for text in texts if query.dotted or text not in shop.dotted)


def _begins_by_half(name: str, text: str) -> bool:
    return name.startswith(text) and (len(text) < HALF_MIN or 2 * len(text) >= len(name))


def _word_order_tier(shop: ShopDocument, words: tuple[str, ...], slugs: Slugs) -> int | None:
    if len(words) < 2:
        return None
    own = [word in shop.words for word in words[:-1]]
    own.append(any(known.startswith(words[-1]) for known in shop.words))
    carried = frozenset(shop.categories)
    category = [bool(carried & slugs[word]) for word in words]
    if all(own) or any(
        _is_whole_name(shop, words[:end]) and all(category[end:])
        for end in range(1, min(len(words) - 1, OVERLAP_WORDS) + 1)
    ):
        return SuggestTier.WORDS
    if any(own) and all(a or b for a, b in zip(own, category, strict=True)):
        return SuggestTier.WORDS_AND_CATEGORY
    return None


def _is_whole_name(shop: ShopDocument, words: tuple[str, ...]) -> bool:
    """Whether these words of a longer query are a name; a single word after an article is none."""
    return any(text in shop.full and text not in shop.rests for text in (" ".join(words), "".join(words)))


@dataclass(frozen=True)
class Reading:
    """A reading of a query: its words, and what they mean (M3, M5)."""

    words: tuple[QueryWord, ...]
    meanings: Mapping[str, WordMeaning]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word.text for word in self.words))


def find_tier(
    shop: ShopDocument, query: FindForms, readings: Sequence[Reading], categories: Collection[str]
) -> int | None:
    """The tier of find_shop (M3, M4) of a shop that passes the filters; None where it does not match.

    The query has no ignored words; the first reading is as typed, the second, if there is one, as a wish.
    """
    texts = query.forms.texts
    if not texts:
        return FindTier.FIRST_CATEGORY if shop.categories[0] in categories else FindTier.ANY_CATEGORY
    if any(text in shop.full for text in texts):
        return FindTier.EQUALS_FULL
    if not all(word.is_table for word in query.words) and any(
        full.startswith(f"{text} ") for full in shop.full for text in texts
    ):
        return FindTier.FIRST_WORDS
    found = []
    # Of a query of one word, a word of a name is only the beginning of a key.
    is_one_word = len(readings[0].texts) == 1 and readings[0].texts[0] == texts[0] and not query.words[0].host
    if (
        query.words
        and not is_one_word
        and all("a" in name_evidence(shop, query, readings[0], text) for text in readings[0].texts)
    ):
        found.append(FindTier.WORDS)
    if any(full.startswith(texts) for full in shop.full):
        found.append(FindTier.BEGINS_FULL)
    if any(key.startswith(texts) for key in shop.keys):
        found.append(FindTier.BEGINS_KEY)
    for reading in readings:
        for tier, evidence in _TIERS:
            counted = evidence - {"a"} if is_one_word else evidence
            if _each_has(shop, query, reading, counted):
                found.append(tier)
    return max(found, default=None)


# By tier, the kinds of evidence that each word may have: as M3 calls them, (c) by whether it names the shop's first
# category, any, or only hints at one, and (e) by whether the country is stated.
_TIERS: Final = (
    (FindTier.FIRST_CATEGORY, {"a", "c first", "e stated"}),
    (FindTier.ANY_CATEGORY, {"a", "c first", "c any", "e stated"}),
    (FindTier.BEGINNINGS, {"a", "b", "c first", "c any", "c hint", "e stated", "e"}),
    (FindTier.PARTS, {"a", "b", "c first", "c any", "c hint", "d", "e stated", "e"}),
)
_PLACES: Final = {"e stated", "e"}


def _each_has(shop: ShopDocument, query: FindForms, reading: Reading, wanted: set[str]) -> bool:
    """Whether each word has some of the evidence; (e) counts where another word has other evidence."""
    if not reading.words:
        return False
    evidence = [word_evidence(shop, query, reading, text) & wanted for text in reading.texts]
    return all(evidence) and any(one - _PLACES for one in evidence)


def word_evidence(shop: ShopDocument, query: FindForms, reading: Reading, text: str) -> set[str]:
    """The kinds of evidence of a word (M3)."""
    found = name_evidence(shop, query, reading, text)
    meaning = reading.meanings[text]
    if set(meaning.slugs) & set(shop.categories):
        if not _counts_as_named(query, meaning, text):
            found.add("c hint")
        else:
            found.add("c first" if shop.categories[0] in meaning.slugs else "c any")
    if query.several:
        found |= _place_evidence(shop, query, text)
    return found


def _counts_as_named(query: FindForms, meaning: WordMeaning, text: str) -> bool:
    if query.several or meaning.level is Level.OWN:
        return meaning.level <= Level.STEM
    if is_ideographic(text):
        return meaning.level in (Level.OTHER_LANGUAGE, Level.SYNONYM)
    is_other = meaning.level is Level.OTHER_LANGUAGE and len(text) >= OTHER_LANGUAGE_MIN
    return is_other or (meaning.level is Level.SYNONYM and len(text) >= SYNONYM_MIN)


def name_evidence(shop: ShopDocument, query: FindForms, reading: Reading, text: str) -> set[str]:
    """The kinds of evidence (a), (b) and (d) of a word: by the names and the domain of the shop."""
    places = [place for place in reading.words if place.text == text]
    found: set[str] = set()
    if any(place.host == shop.domain for place in places if place.host):
        found.add("a")
    meaning = reading.meanings[text]
    names_category = query.several and meaning.slugs and meaning.level <= Level.STEM
    # `thé` is not the word of The Body Shop.
    if all(place.is_suffix or (names_category and text in TABLE_WORDS and not place.is_table) for place in places):
        return found
    if text in shop.words:
        found.add("a")
    is_letter = len(text) == 1 and text.isalpha() and not is_part_evidence(text)
    if is_letter and query.words[-1].text != text:
        return found
    longest = len(text) + (2 if len(text) >= 4 else 1) if names_category else 99
    if any(word.startswith(text) and len(word) <= longest for word in shop.words):
        found.add("b")
    if not names_category and is_part_evidence(text) and any(text in infix for infix in shop.infixes):
        found.add("d")
    return found


def _place_evidence(shop: ShopDocument, query: FindForms, text: str) -> set[str]:
    """The kinds of evidence (e): a label of the domain, or a country, by this word or with its neighbours."""
    found = {"e"} if text in shop.labels else set()
    for codes in countries_of(query, text):
        if {*shop.countries, country_of(shop.domain)}.intersection(codes):
            found.add("e stated")
        if WORLDWIDE in shop.countries:
            found.add("e")
    return found


def countries_of(query: FindForms, text: str) -> list[tuple[str, ...]]:
    """The codes of each country's name that a word is in."""
    found = []
    for start in range(len(query.words)):
        for end in range(start + 1, start + 5):
            run = query.words[start:end]
            texts = [place.text for place in run]
            named = country_names().get(" ".join(texts), ())
            if text in texts and named and not any(place.is_suffix for place in run):
                found.append(named)
    return found


def near_tier(shop: ShopDocument, query: QueryForms) -> int | None:
    """The tier of typing errors of what may be meant (M6): of whole full forms, or of their longer half."""
    forms = _prefix_candidates(shop.full, shop, query)
    for text in query.texts:
        if len(text) < ONE_TYPO_MIN:
            continue
        if any(OSA.distance(text, form) <= 1 for form in forms):
            return SuggestTier.ONE_TYPO
        half = [form for form in forms if len(text) >= HALF_MIN and 2 * len(text) >= len(form)]
        if any(_begins_nearly(form, text, 1) for form in half):
            return SuggestTier.ONE_TYPO
    for text in query.texts:
        half = [form for form in forms if len(text) >= TWO_TYPOS_MIN and 2 * len(text) >= len(form)]
        if any(_begins_nearly(form, text, 2) for form in half):
            return SuggestTier.TWO_TYPOS
    return None


def typo_tier(shop: ShopDocument, query: QueryForms) -> int | None:
    """The tier of typing errors (3 and 2 of M9)."""
    for tier, distance, shortest in (
        (SuggestTier.ONE_TYPO, 1, ONE_TYPO_MIN),
        (SuggestTier.TWO_TYPOS, 2, TWO_TYPOS_MIN),
    ):
        texts = [text for text in query.texts if len(text) >= shortest]
        keys = _prefix_candidates(shop.keys, shop, query)
        if any(_begins_nearly(key, text, distance) for text in texts for key in keys):
            return tier
    return None


def _begins_nearly(key: str, text: str, distance: int) -> bool:
    """Whether some prefix of the key is at most `distance` edits away from the text.

    Two edits never change the first character, nor a character of the key from FIXED_FROM on.
    """
    if distance > 1 and key[0] != text[0]:
        return False
    prefixes = [key[:end] for end in range(max(1, len(text) - distance), min(len(key), len(text) + distance) + 1)]
    near = any(OSA.distance(text, prefix, score_cutoff=distance) <= distance for prefix in prefixes)
    if near and distance > 1 and any(map(_is_fixed, key)):
        return any(_distance_around_fixed(prefix, text) <= distance for prefix in prefixes)
    return near


def _distance_around_fixed(key: str, text: str) -> int:
    """The optimal string alignment distance that only matches, and never edits, the fixed characters of the key."""
    never = len(key) + len(text) + 1
    rows = [list(range(len(text) + 1))]
    for end, letter in enumerate(key, 1):
        above, fixed = rows[-1], _is_fixed(letter)
        row = [never if fixed else above[0] + 1]
        for column, typed in enumerate(text, 1):
            best = row[-1] + 1
            if letter == typed:
                best = min(best, above[column - 1])
            elif not fixed:
                best = min(best, above[column - 1] + 1)
            if not fixed:
                best = min(best, above[column] + 1)
                if end > 1 and column > 1 and (key[end - 2], letter) == (typed, text[column - 2]):
                    best = best if _is_fixed(typed) else min(best, rows[-2][column - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def _is_fixed(letter: str) -> bool:
    return ord(letter) >= FIXED_FROM


def overlap_tier(shop: ShopDocument, words: tuple[str, ...]) -> int | None:
    """The tier of shared words (2, 1 and 0 of M9)."""
    counted = words[:OVERLAP_WORDS]
    letters = sum(len(word) for word in words)
    shared = sum(len(word) for word in counted if word in shop.words)
    parts = [words[:end] for end in range(1, len(words)) if end <= OVERLAP_WORDS]
    if len(words) <= OVERLAP_WORDS:
        parts += [words[start:] for start in range(1, len(words))]
    if any(NAMED_PART * len("".join(part)) >= letters and _is_whole_name(shop, part) for part in parts):
        return SuggestTier.PART_IS_NAME
    if 4 * shared >= 3 * letters:
        return SuggestTier.MOST_OF_WORDS
    if 2 * shared >= letters or any(_is_whole_name(shop, (word,)) for word in counted):
        return SuggestTier.HALF_OF_WORDS
    return None
