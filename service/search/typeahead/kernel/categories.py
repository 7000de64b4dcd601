"""The tiers in which some of several words say categories of a shop (5 and 4)."""

from index_mappings.tiers import OVERLAP_WORDS
from index_mappings.typeahead.segment import FULL, POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import Array, Carried, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text, prefix_range
from service.search.typeahead.kernel.ranking import insert_ranked, passes
from service.search.typeahead.kernel.words import has_word


@inner
def collect_named_in_category(
    texts: Texts,
    carried: Carried,
    asked: Array,
    bounds: Ranges,
    words: Ranges,
    meant: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of which the first words are a full form and each word behind says a category (5).

    Returns as `insert_ranked`.
    """
    heads, postings = texts.heads, texts.postings
    of_shops, categories = carried.own_category_heads, carried.own_categories
    last = len(words) - 1
    saying = last  # all words from here on say some category
    while saying > 1 and meant[saying - 1] < meant[saying]:
        saying -= 1
    if meant[last] == meant[last + 1]:
        return count
    for form in range(2):
        start = bounds[form, 0]
        between = 1 - form  # a space, in the first form
        until = start - between
        for number in range(min(last, OVERLAP_WORDS)):
            until += between + words[number, 1] - words[number, 0]
            text = find_text(texts.lookup, asked, start, until) if number + 1 >= saying else -1
            if text < 0:
                continue
            for at in range(heads[text], heads[text + 1]):
                shop = postings[at] >> POSTING_BITS
                if count == len(found) and found[count - 1] < shop:
                    break
                if (
                    postings[at] & FULL
                    and passes(passing, texts.removed, shop)
                    and _says_categories(of_shops, categories, meant, shop, number + 1, last + 1)
                ):
                    count = insert_ranked(shop, found, better, count)
    return count


@inner
def collect_words_and_categories(
    texts: Texts,
    carried: Carried,
    ranges: Ranges,
    asked: Array,
    words: Ranges,
    meant: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of which every word is their own or says a category, and at least one is their own (4).

    Returns as `insert_ranked`.
    """
    heads, category_heads = texts.heads, carried.category_heads
    own_heads, own = texts.own_heads, texts.own
    of_shops, categories = carried.own_category_heads, carried.own_categories
    size = len(words)
    own_postings = 0  # of all words
    rarest, fewest = -1, 0
    for number in range(size):
        start, end = words[number]
        if number + 1 < size:
            text = find_text(texts.lookup, asked, start, end)
            ranges[number, 0], ranges[number, 1] = (text, text + 1) if text >= 0 else (0, 0)
        else:
            ranges[number, 0], ranges[number, 1] = prefix_range(texts.lookup, IN_ORDER, asked, start, end)
        having = heads[ranges[number, 1]] - heads[ranges[number, 0]]
        own_postings += having
        for at in range(meant[number], meant[number + 1]):
            having += category_heads[meant[at] + 1] - category_heads[meant[at]]
        if rarest < 0 or having < fewest:
            rarest, fewest = number, having
    if not fewest or not own_postings:
        return count
    # Every shop of this tier has the rarest word, and some word of its own: the shorter list is walked.
    if own_postings < fewest:
        for number in range(size):
            count = _collect_owners(texts, carried, ranges, size, number, meant, passing, found, better, count)
        return count
    count = _collect_owners(texts, carried, ranges, size, rarest, meant, passing, found, better, count)
    for at in range(meant[rarest], meant[rarest + 1]):
        for carrying in range(category_heads[meant[at]], category_heads[meant[at] + 1]):
            shop = carried.category_shops[carrying]
            if count == len(found) and found[count - 1] < shop:
                break
            if passes(passing, texts.removed, shop) and _has_or_says_all(
                own_heads, own, of_shops, categories, ranges, size, meant, shop
            ):
                count = insert_ranked(shop, found, better, count)
    return count


@inner
def _collect_owners(
    texts: Texts,
    carried: Carried,
    ranges: Ranges,
    size: int,
    number: int,
    meant: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of the tier that have one word as their own. Returns as `insert_ranked`."""
    heads, postings = texts.heads, texts.postings
    own_heads, own = texts.own_heads, texts.own
    of_shops, categories = carried.own_category_heads, carried.own_categories
    low, high = ranges[number, 0], ranges[number, 1]
    for text in range(low, high):
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if (
                postings[at] & WORD
                and passes(passing, texts.removed, shop)
                and _has_or_says_all(own_heads, own, of_shops, categories, ranges, size, meant, shop)
            ):
                count = insert_ranked(shop, found, better, count)
    return count


@inner
def _has_or_says_all(
    own_heads: Array,
    own: Array,
    category_heads: Array,
    categories: Array,
    ranges: Ranges,
    size: int,
    meant: Array,
    shop: int,
) -> bool:
    """Whether every word is the shop's own or says a category of it, and at least one is its own."""
    start, end = own_heads[shop], own_heads[shop + 1]
    any_own = False
    for number in range(size):
        if has_word(own, start, end, ranges[number, 0], ranges[number, 1]):
            any_own = True
        elif not _says_category(category_heads, categories, meant, shop, number):
            return False
    return any_own


@inner
def _says_categories(category_heads: Array, categories: Array, meant: Array, shop: int, first: int, last: int) -> bool:
    """Whether each of the words first:last says a category of the shop."""
    for number in range(first, last):
        if not _says_category(category_heads, categories, meant, shop, number):
            return False
    return True


@inner
def _says_category(category_heads: Array, categories: Array, meant: Array, shop: int, number: int) -> bool:
    """Whether a word says a category of the shop: one of those that it means, which ascend."""
    first, last = meant[number], meant[number + 1]
    if first == last:
        return False
    for at in range(category_heads[shop], category_heads[shop + 1]):
        low, high = first, last
        while low < high:
            middle = (low + high) >> 1
            if meant[middle] < categories[at]:
                low = middle + 1
            else:
                high = middle
        if low < last and meant[low] == categories[at]:
            return True
    return False
