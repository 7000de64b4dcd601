"""The forms by which shops are found (X2), computed at projection, and those of a query, without variants (X3)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from anyascii import anyascii

from index_mappings.documents import Shop
from index_mappings.hosts import (
    DomainParts,
    country_of,
    domain_parts,
    has_dot,
    reduce_host,
    unicode_host,
    without_scheme,
)
from index_mappings.table_words import unfolded
from index_mappings.text import (
    fold,
    fold_by_script,
    has_word_character,
    is_blank,
    is_ideographic,
    joined,
    readings,
    script_starts,
    scripts_of,
    spellings,
    typed_words,
    without_articles,
    without_trade_marks,
)
from index_mappings.tiers import CLIPPED_MIN

# Labels of public suffixes that do not distinguish shops.
_ANYWHERE: Final = frozenset(("com", "co", "net", "org"))


@dataclass(frozen=True, slots=True)
class ShopForms:
    """The forms by which a shop is found; each tuple is sorted and has no duplicates.

    `names` are whole names and the whole domain, and the main label if a name is spelt like a domain (`CDON.com`).
    `leading` are those that most people type: the name, aliases that are its last words or in another script, and names
    without their leading article. `full` are whole names, whole domain and main label. A query may be a prefix of
    `keys`: each name from each of its words on, the domain, and each of its labels. `words` are of the names and of the
    main label. `infixes` are names without spaces, and the domain without its public suffix, without those that are
    parts of others; they have all words as parts.

    `clipped` are the words without their last letter, or the last two where four are left: a query's word that names a
    category counts as a beginning of no longer words (M3).

    `labels` match next to another word (M3 e): the labels of the domain but the main label, each one word, and the code
    of the country of its top-level domain. `dotted` are full forms and keys that come only from a domain with labels
    left of its main label: in the typeahead, only a query with a dot matches a prefix of these (M9). `rests` are full
    forms that are only the one word after an article (`Source` of The Source): the typeahead does not compare these
    with a part of a longer query (M9).
    """

    names: tuple[str, ...]
    leading: tuple[str, ...]
    full: tuple[str, ...]
    keys: tuple[str, ...]
    words: tuple[str, ...]
    infixes: tuple[str, ...]
    labels: tuple[str, ...] = ()
    dotted: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()
    clipped: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)  # not frozen: a suggest request creates some, and frozen ones take longer
class QueryForms:
    """The forms of a query that are compared: spaced, joined, and as a domain if it looks like one (X3).

    `texts` are distinct, the spaced one first; a blank query has none, and punctuation alone has no words. A dotted
    query is one token with a dot, which may be a prefix of a dotted form (M9). `marked` are the words of `unfolded`, by
    which table words and stems are compared (M3); empty where they equal `words`.
    """

    texts: tuple[str, ...]
    words: tuple[str, ...]
    dotted: bool = False
    marked: tuple[str, ...] = ()

    @property
    def spaced(self) -> str:
        """The folded query with its spaces, or the empty string for a blank one."""
        return self.texts[0] if self.texts else ""


def query_forms(text: str, cut: int | None = None) -> QueryForms:
    """Fold a typed query once, without variants; `cut` is the longest form (typeahead), and drops a scheme (M10)."""
    if text.isascii() and text.isalnum():
        # The most frequent case: folding one ASCII word only changes it to lower case.
        word = text.lower()[:cut]
        return QueryForms(texts=(word,), words=(word,))
    if cut is not None:
        text = without_scheme(text)
    if is_blank(text):
        return QueryForms(texts=(), words=())
    spaced = fold(text)[:cut].rstrip()
    if not has_word_character(spaced):
        return QueryForms(texts=(spaced,), words=())
    texts = [spaced, joined(spaced)]
    tokens = text.split()
    dotted = len(tokens) == 1 and has_dot(tokens[0])
    if dotted:
        texts.append((reduce_host(tokens[0]) or "")[:cut])
    words = tuple(spaced.split())
    marked = () if text.isascii() else _marked(text, words)
    return QueryForms(tuple(dict.fromkeys(filter(None, texts))), words, dotted, marked)


def _marked(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """The words with their marks, of which the last may be cut; none where they equal the folded ones."""
    typed = (*typed_words(text), *[("", "")] * len(words))
    pairs = zip(words, typed, strict=False)
    marked = tuple([unfolded(one) if folded == word else word for word, (folded, one) in pairs])
    return () if marked == words else marked


# Merge audits compare the names of a shop with those of up to 200 others, several times.
@lru_cache(maxsize=256)
def whole_names(name: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """All forms of a shop's whole names, without those of its domain."""
    stated = (name, *aliases)
    return _unique(*(_with_joined(_name_forms(text)) for text in (*stated, *without_articles(stated))))


def shop_forms(name: str, aliases: Iterable[str], domain: str) -> ShopForms:
    """All forms of a shop, whose domain is reduced by R1 (A-labels)."""
    stated = (name, *aliases)
    rests = tuple(without_articles(stated))
    single = frozenset(rest for rest in rests if " " not in fold(rest))
    spaced = {text: _name_forms(text) for text in (*stated, *rests)}
    whole = {text: _with_joined(forms) for text, forms in spaced.items()}
    parts = domain_parts(domain)
    label_forms = {label: _label_forms(label) for label in parts.labels}  # the main label is one of them
    main_forms = label_forms[parts.main_label]
    domains = _domain_forms(domain)
    by_domain = [text for text in spaced if _spells_label(text, parts.main_label)]
    pieces = [piece for part in unicode_host(parts.main_label).split("-") for piece in fold(part).split()]
    tails = [tail for text, forms in spaced.items() for tail in _tails(text, forms)]
    own_keys = set().union(*whole.values(), tails, main_forms, pieces)
    by_labels: set[str] = set()
    if len(parts.labels) > 1:
        by_labels = {*domains, *(form for label in parts.labels[:-1] for form in label_forms[label])}
    named_otherwise = [forms for text, forms in whole.items() if text in stated or text not in single]
    named = [form for forms in spaced.values() for form in forms if has_word_character(form)]
    words = _unique((word for form in named for word in form.split()), pieces)
    return ShopForms(
        names=_unique(*whole.values(), domains, main_forms if by_domain else ()),
        leading=_unique(
            *(whole[text] for text in (name, *_leading(name, stated[1:]), *rests)),
            main_forms if name in by_domain else (),
        ),
        full=_unique(*whole.values(), domains, main_forms),
        keys=_unique(own_keys, domains, by_labels),
        words=words,
        infixes=_infixes(set().union(*whole.values()), domains, main_forms, parts),
        labels=labels_of(domain),
        dotted=_unique(by_labels - own_keys),
        rests=_unique(set().union(*(whole[text] for text in single)).difference(*named_otherwise, domains, main_forms)),
        clipped=_unique((word[:-1] for word in words), (word[:-2] for word in words if len(word) >= CLIPPED_MIN + 2)),
    )


def _infixes(names: Iterable[str], domains: set[str], main_forms: set[str], parts: DomainParts) -> tuple[str, ...]:
    """The unspaced names and the domain without its public suffix: each word of a shop is a part of one of these."""
    own = joined(fold(unicode_host(".".join(parts.labels))))
    # Not names: spellings of the domain have its public suffix, and main labels may be A-labels or not folded.
    spellings = domains | {form for form in main_forms if joined(form) not in own}
    unspaced = {name for name in names if " " not in name and has_word_character(name)} - spellings
    kept: list[str] = []
    for text in sorted({*unspaced, own}, key=len, reverse=True):
        if not any(text in longer for longer in kept):  # which has all parts of this one
            kept.append(text)
    return _unique(kept)


@lru_cache(maxsize=256)
def stated_names(name: str, aliases: tuple[str, ...]) -> frozenset[str]:
    """The spaced folded forms of a name and aliases for comparing shops (A12), without those that others share."""
    return frozenset(form for text in (name, *aliases) for form in map(fold, spellings(text)) if form)


def shared_names(first: Shop, second: Shop) -> frozenset[str]:
    """The names that both shops state (A12's "same name")."""
    return stated_names(first.name, first.aliases) & stated_names(second.name, second.aliases)


def labels_of(domain: str) -> tuple[str, ...]:
    """The folded labels of one word but the main one, and the country of the top-level domain in capitals (M3 e)."""
    labels = domain.split(".")
    del labels[len(domain_parts(domain).labels) - 1]
    return _unique(folded_labels(labels), filter(None, (country_of(domain),)))


def folded_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels of domains as words of queries equal them, in order, without those that distinguish no shops."""
    folded = (fold(unicode_host(label)) for label in labels)
    return tuple(label for label in folded if label and label not in _ANYWHERE and " " not in label)


def _domain_forms(domain: str) -> set[str]:
    spellings = {domain, unicode_host(domain)}
    return spellings | {fold(spelling) for spelling in spellings}


def _name_forms(text: str) -> frozenset[str]:
    """The spaced forms of one name: plain, letters spelt out, transliterated; also each with & and + as "and"."""
    plain = fold(text)
    if not has_word_character(plain):
        return frozenset((plain,))
    transliterated = () if text.isascii() else map(anyascii, readings(without_trade_marks(text)))
    return frozenset(map(fold, (*spellings(text), *transliterated)))


def _with_joined(forms: frozenset[str]) -> frozenset[str]:
    return forms | {joined(form) for form in forms if has_word_character(form)}


def _leading(name: str, aliases: Sequence[str]) -> Iterator[str]:
    """The aliases that count like the name: its last words, or the name in another script."""
    if not aliases:
        return
    own, own_scripts = fold(name), scripts_of(fold_by_script(name))
    for alias in aliases:
        scripts = scripts_of(fold_by_script(alias))
        if f" {own}".endswith(f" {fold(alias)}") or (scripts and not scripts & own_scripts):
            yield alias


def _spells_label(name: str, label: str) -> bool:
    """Whether a name is spelt like a domain with this main label."""
    host = reduce_host(name) if has_dot(name) and not any(map(str.isspace, name.strip())) else None
    return host is not None and domain_parts(host).main_label == label


def _label_forms(label: str) -> set[str]:
    forms = _domain_forms(label)
    return forms | {joined(form) for form in forms}


def _tails(text: str, forms: Iterable[str]) -> Iterator[str]:
    """The forms of one name from each later word start to the end, whether words are spaced or not."""
    if not has_word_character(fold(text)):
        return
    for form in forms:
        position = form.find(" ")
        while position != -1:
            yield form[position + 1 :]
            position = form.find(" ", position + 1)
    if is_ideographic(fold(text)):
        for spelling in spellings(text):
            by_script = fold_by_script(spelling)
            yield from (fold(by_script[start:]) for start in script_starts(by_script))


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    texts = set().union(*groups)
    texts.discard("")
    return tuple(sorted(texts))
