"""Which categories a word means and which are suggested, written as plainly as possible: the oracle of the table."""

from rapidfuzz.distance import OSA

from index_mappings.documents import Category
from index_mappings.forms import QueryForms
from index_mappings.tiers import CATEGORY_PREFIX_MIN, CATEGORY_TYPO_MIN
from service.search.categories import CategoryTable


class PlainCategories(CategoryTable):
    """The categories of the reference: every word of every category is looked at for every query."""

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories that have a word which this one equals or, from 3 characters up, begins (M5)."""
        return tuple(entry.slug for entry in self.entries if any(_says(word, known) for known in entry.words))

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories of a suggest request (M10)."""
        if not query.texts:
            return self.categories[:limit]
        if not query.words:
            return ()
        word = query.words[-1]
        found = [entry for entry in self.entries if any(known.startswith(word) for known in entry.words)]
        if not found and len(word) >= CATEGORY_TYPO_MIN:
            found = [entry for entry in self.entries if any(_begins_nearly(known, word) for known in entry.words)]
        return tuple(entry.shown() for entry in found[:limit])


def _says(word: str, known: str) -> bool:
    return word == known or (len(word) >= CATEGORY_PREFIX_MIN and known.startswith(word))


def _begins_nearly(known: str, text: str) -> bool:
    """Whether some beginning of a known word is at most one typing error away from the text."""
    return any(OSA.distance(text, known[:end], score_cutoff=1) <= 1 for end in range(len(known) + 1))
