"""The tiers of one shop for one query, written as plainly as possible: what the reference backend orders by."""

from rapidfuzz.distance import OSA

from index_mappings.documents import ShopDocument, is_known_to_sell_in
from index_mappings.forms import QueryForms
from index_mappings.text import is_ideographic
from index_mappings.tiers import (
    HALF_MIN,
    NAMED_PART,
    ONE_TYPO_MIN,
    OVERLAP_WORDS,
    TWO_TYPOS_MIN,
    FindTier,
    SuggestTier,
    is_part_evidence,
)

# The slugs of the categories that each word means.
Slugs = dict[str, frozenset[str]]


def suggest_tier(shop: ShopDocument, query: QueryForms, slugs: Slugs, country: str | None = None) -> int | None:
    """The tier of /suggest (M9) where two typing errors do not count; of a shop that passes the country's filter."""
    known = is_known_to_sell_in(shop, country)
    if not query.texts:
        return SuggestTier.HALF_OF_WORDS
    if any(text in shop.names for text in query.texts):
        return SuggestTier.EQUALS_NAME
    if any(text in shop.full for text in query.texts) or any(
        _begins_by_half(name, text) for name in shop.leading for text in query.texts
    ):
        return SuggestTier.BEGINS_NAME if known else SuggestTier.BEGINS_FORM
    whole_key = any(text in shop.keys for text in query.texts)
    if known and (whole_key or any(full.startswith(query.texts) for full in shop.full)):
        return SuggestTier.BEGINS_FORM
    if any(key.startswith(query.texts) for key in shop.keys):
        return SuggestTier.WORDS
    if not query.words:
        return None
    if (tier := _word_order_tier(shop, query.words, slugs)) is not None:
        return tier
    if typo_tier(shop, query) == SuggestTier.ONE_TYPO:
        return SuggestTier.ONE_TYPO
    return overlap_tier(shop, query.words)


def _begins_by_half(name: str, text: str) -> bool:
    return name.startswith(text) and (len(text) < HALF_MIN or 2 * len(text) >= len(name))


def _word_order_tier(shop: ShopDocument, words: tuple[str, ...], slugs: Slugs) -> int | None:
    if len(words) < 2:  # noqa: PLR2004 - two or more words
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
    return " ".join(words) in shop.full or "".join(words) in shop.full


def find_tier(shop: ShopDocument, query: QueryForms, slugs: Slugs) -> int | None:
    """The tier of find_shop (M3, M4); None where the shop does not match."""
    if not query.texts:
        return FindTier.CATEGORY
    if any(text in shop.full for text in query.texts):
        return FindTier.EQUALS_FULL
    if any(full.startswith(query.texts) for full in shop.full):
        return FindTier.BEGINS_FULL
    if any(key.startswith(query.texts) for key in shop.keys):
        return FindTier.BEGINS_KEY
    tiers = [word_tier(shop, word, slugs[word]) for word in query.words]
    known = [tier for tier in tiers if tier is not None]
    return min(known) if known and len(known) == len(tiers) else None


def word_tier(shop: ShopDocument, word: str, slugs: frozenset[str]) -> int | None:
    """The best evidence of one word: (a) or (b), else (d), else (c) of M3."""
    if any(known.startswith(word) for known in shop.words):
        return FindTier.WORDS
    long_enough = is_part_evidence(word, ideographic=is_ideographic(word))
    if long_enough and any(word in infix for infix in shop.infixes):
        return FindTier.INFIX
    return FindTier.CATEGORY if slugs & frozenset(shop.categories) else None


def typo_tier(shop: ShopDocument, query: QueryForms) -> int | None:
    """The tier of typing errors (3 and 2 of M9)."""
    for tier, distance, shortest in (
        (SuggestTier.ONE_TYPO, 1, ONE_TYPO_MIN),
        (SuggestTier.TWO_TYPOS, 2, TWO_TYPOS_MIN),
    ):
        texts = [text for text in query.texts if len(text) >= shortest]
        if any(_begins_nearly(key, text, distance) for text in texts for key in shop.keys):
            return tier
    return None


def _begins_nearly(key: str, text: str, distance: int) -> bool:
    """Whether some beginning of the key is at most `distance` edits away from the text.

    Of two edits none is in the first character.
    """
    if distance > 1 and key[0] != text[0]:
        return False
    return any(
        OSA.distance(text, key[:end], score_cutoff=distance) <= distance
        for end in range(max(1, len(text) - distance), min(len(key), len(text) + distance) + 1)
    )


def overlap_tier(shop: ShopDocument, words: tuple[str, ...]) -> int | None:
    """The tier of loosely shared words (2, 1 and 0 of M9)."""
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
    if 2 * shared >= letters or any(word in shop.full for word in counted):
        return SuggestTier.HALF_OF_WORDS
    return None
