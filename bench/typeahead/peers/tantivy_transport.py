"""Answers typeahead by one boolean query of Tantivy's own kinds."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import tantivy
from tantivy import Occur, Query

from bench.typeahead.peers.tantivy_raw import EVERYWHERE, INDEX, SHORT, SHOWN, opened, whole_analyzer, words_analyzer
from bench.typeahead.peers.transport import Answer, Asked, Row, main

# A typo in a shorter word makes another word, as other engines' defaults have it too.
_TYPO_FROM: Final = 4
_TWO_TYPOS_FROM: Final = 8
_WORDS_MAX: Final = 8


@asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[Answer]:
    """Open the index for reading."""
    index = opened(folder / INDEX)
    asking = _Asking(index.schema)
    searcher = index.searcher()

    async def answer(asked: Asked) -> Sequence[Row]:
        for every_word in (True, False):
            query = asking.query(asked, every_word=every_word)
            found = searcher.search(query, asked.limit, count=False, weight_by_field="popularity").hits
            if found:
                break
        return [_row(searcher.doc(address)) for _, address in found]

    yield answer


class _Asking:
    """Makes queries; the analyzers are made once."""

    def __init__(self, schema: tantivy.Schema) -> None:
        self._schema = schema
        self._words = words_analyzer()
        self._whole = whole_analyzer()

    def query(self, asked: Asked, *, every_word: bool) -> Query:
        """Shops that have every word, or any; by one or two characters only those with a text that begins so."""
        words = self._words.analyze(asked.q)[:_WORDS_MAX]
        typed = asked.q.strip()
        whole = self._whole.analyze(typed)[0] if typed else ""
        if 0 < len(whole) <= SHORT and every_word:
            clauses = [(Occur.Must, Query.const_score_query(self._term("short", whole), 1))]
            clauses.append((Occur.Should, Query.const_score_query(self._term("whole", whole), 4)))
        elif words:
            completed = [self._complete(word) for word in words[:-1]]
            evidence = [*completed, self._beginning(words[-1])]
            if every_word:
                clauses = [(Occur.Must, each) for each in evidence]
            else:
                clauses = [(Occur.Must, Query.boolean_query([(Occur.Should, each) for each in evidence]))]
            clauses.append((Occur.Should, Query.const_score_query(self._term("whole", whole), 4)))
            clauses.append((Occur.Should, Query.const_score_query(self._prefix("whole", whole), 6)))
        else:
            clauses = [(Occur.Must, Query.all_query())]
        if asked.country is not None:
            markets = Query.term_set_query(self._schema, "country", [EVERYWHERE, asked.country])
            clauses.append((Occur.Must, Query.const_score_query(markets, 0)))
        return Query.boolean_query(clauses)

    def _complete(self, word: str) -> Query:
        """A word that has been typed to its end."""
        kinds = [
            Query.boost_query(self._term("name", word), 2),
            self._term("words", word),
            Query.const_score_query(self._prefix("category", word), 0.5),
        ]
        if len(word) >= _TYPO_FROM:
            kinds.append(Query.const_score_query(self._near("words", word, prefix=False), 0.5))
        return Query.disjunction_max_query(kinds)

    def _beginning(self, word: str) -> Query:
        """The word that is being typed."""
        kinds = [
            Query.const_score_query(self._prefix("name", word), 3),
            Query.const_score_query(self._prefix("words", word), 2),
            Query.const_score_query(self._prefix("category", word), 0.2),
        ]
        if len(word) >= _TYPO_FROM:
            kinds.append(Query.const_score_query(self._near("words", word, prefix=True), 0.5))
        return Query.disjunction_max_query(kinds)

    def _term(self, field: str, text: str) -> Query:
        return Query.term_query(self._schema, field, text)

    def _prefix(self, field: str, text: str) -> Query:
        return Query.fuzzy_term_query(self._schema, field, text, distance=0, prefix=True)

    def _near(self, field: str, text: str, *, prefix: bool) -> Query:
        distance = 2 if len(text) >= _TWO_TYPOS_FROM else 1
        return Query.fuzzy_term_query(self._schema, field, text, distance=distance, prefix=prefix)


def _row(document: tantivy.Document) -> Row:
    shop_id, name, domain, category = (str(document.get_first(field)) for field in SHOWN)
    return (shop_id, name, domain, category)


if __name__ == "__main__":
    main(opening)
