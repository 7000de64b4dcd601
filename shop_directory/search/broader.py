"""Which words are left out of a query without a match, to find the nearest ones with matches (M6)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

# The maximum number of searches, of broader queries in an answer, and of shops of each.
SEARCHES: Final = 5
BROADER: Final = 3
BROADER_SHOPS: Final = 5


# The words to leave out for each of some queries.
LeftOuts = tuple[tuple[str, ...], ...]


def broader_queries(
    texts: Sequence[str], counts: Mapping[str, int], goods: Collection[str]
) -> tuple[LeftOuts, LeftOuts]:
    """The queries to try: with one word less, then, where these find nothing, with more left out.

    `texts` are the distinct words in query order, `counts` the shops with evidence of each, and `goods` those that name
    a category or a country, which are kept rather than others. Words without shops are in no query that finds any.
    """
    if len(texts) < 2:  # noqa: PLR2004 - something has to be left
        return (), ()
    fewest = sorted(texts, key=counts.__getitem__)
    without_any = tuple(text for text in texts if not counts[text])
    least = (without_any,) if without_any else tuple((text,) for text in texts)
    if len(least) > BROADER:
        chosen = sorted(fewest, key=lambda text: text in goods)[:BROADER]
        least = tuple((text,) for text in texts if text in chosen)
    first, left = len(least[0]) + 1, SEARCHES - len(least)
    more = tuple(tuple(fewest[:number]) for number in range(max(first, len(texts) - left), len(texts)))
    return least if len(least[0]) < len(texts) else (), more
