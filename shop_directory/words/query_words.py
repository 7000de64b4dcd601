"""The words of a query of find_shop as typed, read as typed and as a wish; hosts are themselves (M3, M6)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from index_mappings.forms import QueryForms, folded_labels, query_forms
from index_mappings.hosts import country_of, domain_parts, has_dot, reduce_host, unicode_host
from index_mappings.table_words import SHOP_WORDS, TABLE_WORDS, is_table_word, unfolded
from index_mappings.text import typed_words, words_of


@dataclass(slots=True)  # not frozen: each search creates some
class QueryWord:
    """A folded word at one place of a query, and how answers spell it.

    `token` is the number of its white-space token, `host` the host that this is. A suffix is a label of that host's
    public suffix, not of its main label. No part of a host is a table word.
    """

    text: str
    typed: str
    token: int
    host: str | None = None
    is_suffix: bool = False
    is_table: bool = False


@dataclass(slots=True)
class FindForms:
    """A query of find_shop: its forms, its words in order, and the white-space tokens that words are in, by number.

    There are no words in punctuation alone. `several`: there were two or more words before any was dropped.
    """

    forms: QueryForms
    words: tuple[QueryWord, ...]
    tokens: tuple[str, ...]
    several: bool

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct folded words, in order."""
        return tuple(dict.fromkeys(word.text for word in self.words))

    def is_table(self, text: str) -> bool:
        """Whether a word is a table word wherever it is."""
        return all(word.is_table for word in self.words if word.text == text)

    def wish(self, named: Collection[str]) -> tuple[QueryWord, ...]:
        """The words of the reading as a wish: without table words; none if these are all words or none.

        `named` are words that name a category alone or in a run. A table word of such a run stays, unless it is a word
        for a shop: `e-bike` is not `bike`, and `pet shop` is `pet`.
        """
        left = tuple([word for word in self.words if not word.is_table or _is_inside_name(word, named)])
        return () if len(left) == len(self.words) or all(word.is_table for word in left) else left

    @property
    def ends_with_place(self) -> bool:
        """Whether the last of several words is a table word and the top-level domain of a country (`books de`)."""
        last = self.words[-1]
        return len(self.words) > 1 and last.is_table and country_of(f"x.{last.text}") is not None

    def without(self, missing: Collection[str]) -> "FindForms":
        """The query without some words, and without the suffixes of hosts of which no other word is left."""
        left = tuple(word for word in self.words if word.text not in missing)
        hosts = {word.token for word in left if not word.is_suffix}
        left = tuple(word for word in left if not word.is_suffix or word.token in hosts)
        texts = list(self._texts_of_tokens(left))
        # Words have the numbers of their tokens among the tokens that are left.
        numbers = {token: number for number, token in enumerate(dict.fromkeys(word.token for word in left))}
        words = tuple([replace(one, token=numbers[one.token]) for one in left])
        return FindForms(query_forms(" ".join(texts)), words, tuple(texts), self.several)

    def _texts_of_tokens(self, left: Iterable[QueryWord]) -> Iterator[str]:
        """Each token of which all words are left as it was typed; of others the words."""
        counts = Counter(word.token for word in self.words)
        for token, words in groupby(left, key=attrgetter("token")):
            texts = [word.text for word in words]
            yield self.tokens[token] if len(texts) == counts[token] else " ".join(texts)

    def spelt(self, missing: Collection[str]) -> tuple["SpeltWord", ...]:
        """The distinct words; a host of which `without` leaves nothing is one word."""
        kept = {word.token for word in self.words if word.text not in missing and not word.is_suffix}
        found: dict[str, SpeltWord] = {}
        for word in self.words:
            if word.host is not None and word.token not in kept:
                found.setdefault(word.host, SpeltWord(None, self.tokens[word.token], is_dropped=True))
            else:
                found.setdefault(word.text, SpeltWord(word.text, word.typed, word.text in missing))
        return tuple(found.values())


@dataclass(slots=True)
class SpeltWord:
    """A word in an answer: folded (None for a whole host), as typed, and whether it was dropped."""

    text: str | None
    typed: str
    is_dropped: bool


def find_forms(text: str) -> FindForms:
    """Fold a query, and divide it into words."""
    forms = query_forms(text)
    tokens = tuple(text.split())
    if len(tokens) == len(forms.words) == 1 and forms.texts == forms.words:
        # The most frequent case: one word, which is not a host.
        word = QueryWord(forms.words[0], tokens[0], 0, is_table=is_table_word(tokens[0]))
        return FindForms(forms, (word,), tokens, several=False)
    if text.isascii() and "".join(tokens).isalnum():
        # Each token is one word, and there is no dot.
        plain = [
            QueryWord(word, tokens[number], number, is_table=word in TABLE_WORDS)
            for number, word in enumerate(forms.words)
        ]
        return FindForms(forms, tuple(plain), tokens, len(plain) > 1)
    words = [word for number, token in enumerate(tokens) for word in _words_of_token(token, number)]
    return FindForms(forms, tuple(words) if forms.words else (), tokens, len(words) > 1)


def _words_of_token(token: str, number: int) -> Iterator[QueryWord]:
    host = reduce_host(token) if has_dot(token) else None
    if host is not None and "." in host:
        parts = domain_parts(host)
        main = words_of(unicode_host(parts.main_label))
        if main:
            pieces = dict(typed_words(token))
            for text in main:
                yield QueryWord(text, pieces.get(text, text), number, host)
            for text in folded_labels(host.split(".")[len(parts.labels) :]):
                yield QueryWord(text, pieces.get(text, text), number, host, is_suffix=True)
            return
    for text, typed in typed_words(token):
        yield QueryWord(text, typed, number, is_table=is_table_word(typed))


def _is_inside_name(word: QueryWord, named: Collection[str]) -> bool:
    return word.text in named and unfolded(word.typed) not in SHOP_WORDS


def runs(words: Sequence[QueryWord], longest: int) -> Iterator[tuple[int, int]]:
    """The bounds of each run of neighbouring words, suffixes of hosts excepted, of at most so many words."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + longest, len(words)) + 1):
            if words[end - 1].is_suffix:
                break
            yield start, end
