"""All the ways in which a shop's name and domain may be typed: full forms, keys, words and infixes (X2).

They are made once, when a shop is projected; a query is folded without variants and compared with them (X3).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from anyascii import anyascii

from index_mappings.hosts import domain_parts, has_dot, reduce_host, unicode_host
from index_mappings.spellings import readings, spellings, without_articles
from index_mappings.text import (
    fold,
    fold_by_script,
    has_word_character,
    is_blank,
    is_ideographic,
    joined,
    script_starts,
    scripts_of,
)

# Labels of public suffixes that say nothing of a shop.
_ANYWHERE: Final = frozenset(("com", "co", "net", "org"))


@dataclass(frozen=True, slots=True)
class ShopForms:
    """What a shop can be found by; every tuple is sorted and without repeats.

    Attributes:
        names: whole names and the whole domain; the main label where a name is spelt like a domain (`CDON.com`).
        leading: of these the name, aliases that are its last words or in another script, and names without their
            leading article: what most people type.
        full: whole names, whole domain, main label.
        keys: where the beginning of a query may begin: each word of a name, the domain, each of its labels.
        words: single words of the names and of the main label.
        infixes: names without spaces, and the domain without its public suffix.
        labels: of the domain those around the main label, each in one word, that count next to another word (M3 e).
        dotted: of full forms and keys those that only a domain with labels left of its main label gives: the typeahead
            takes their beginnings for evidence only where the query has a dot (M9).
        rests: of full forms those that are only one word behind an article (`Source` of The Source): where a part of a
            longer query is compared, the typeahead takes them for none (M9).
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


@dataclass(slots=True, unsafe_hash=True)  # not frozen: a suggest request makes some
class QueryForms:
    """A query in the forms in which it is compared: spaced, joined, and as a domain where it looks like one (X3).

    Attributes:
        texts: the distinct forms, the spaced one first; empty for a blank query.
        words: the folded words; empty for punctuation alone.
        dotted: whether it is one token with a dot, so that it may begin a domain with labels left of its main one (M9).
    """

    texts: tuple[str, ...]
    words: tuple[str, ...]
    dotted: bool = False

    @property
    def spaced(self) -> str:
        """The folded query with its spaces, or the empty string for a blank one."""
        return self.texts[0] if self.texts else ""


def query_forms(text: str, cut: int | None = None) -> QueryForms:
    """Fold a typed query once, without variants.

    Args:
        text: as typed.
        cut: keep at most so many characters of each form (typeahead).
    """
    if text.isascii() and text.isalnum():
        # One word that folding makes lower case and nothing else: most suggest requests.
        word = text.lower()[:cut]
        return QueryForms(texts=(word,), words=(word,))
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
    return QueryForms(texts=tuple(dict.fromkeys(filter(None, texts))), words=tuple(spaced.split()), dotted=dotted)


def forms_of_words(words: tuple[str, ...]) -> QueryForms:
    """The forms of a query of which only these folded words are kept."""
    spaced = " ".join(words)
    return QueryForms(texts=tuple(dict.fromkeys(filter(None, (spaced, joined(spaced))))), words=words)


def whole_names(name: str, aliases: Iterable[str]) -> tuple[str, ...]:
    """The whole names of a shop in all their forms, without those of its domain."""
    stated = (name, *aliases)
    return _unique(*(_with_joined(_name_forms(text)) for text in (*stated, *without_articles(stated))))


def shop_forms(name: str, aliases: Iterable[str], domain: str) -> ShopForms:
    """All forms of a shop.

    Args:
        name: as in the catalogue.
        aliases: other names.
        domain: reduced by R1 (A-labels).
    """
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
    return ShopForms(
        names=_unique(*whole.values(), domains, main_forms if by_domain else ()),
        leading=_unique(
            *(whole[text] for text in (name, *_leading(name, aliases), *rests)), main_forms if name in by_domain else ()
        ),
        full=_unique(*whole.values(), domains, main_forms),
        keys=_unique(own_keys, domains, by_labels),
        words=_unique((word for form in named for word in form.split()), pieces),
        infixes=infixes_of(set().union(*whole.values()), domain),
        labels=labels_of(domain),
        dotted=_unique(by_labels - own_keys),
        rests=_unique(set().union(*(whole[text] for text in single)).difference(*named_otherwise, domains, main_forms)),
    )


def infixes_of(names: Iterable[str], domain: str) -> tuple[str, ...]:
    """The infixes of a shop.

    Args:
        names: its whole names, spaced and joined; those of `ShopForms.names` are the same evidence.
        domain: reduced by R1.
    """
    parts = domain_parts(domain)
    own = joined(fold(unicode_host(parts.without_suffix)))
    # Spellings of the domain have its public suffix, some of its main label are A-labels or not folded.
    spellings = _domain_forms(domain) | {form for form in _label_forms(parts.main_label) if joined(form) not in own}
    unspaced = (joined(name) for name in names if name not in spellings and has_word_character(name))
    return _unique(unspaced, [own])


def labels_of(domain: str) -> tuple[str, ...]:
    """The folded labels of a reduced domain's public suffix, and of what is left of its main label (M3 e).

    A label of several words is left out, as no word of a query equals it.
    """
    labels = domain.split(".")
    del labels[len(domain_parts(domain).labels) - 1]
    folded = {fold(unicode_host(label)) for label in labels}
    return _unique(label for label in folded - _ANYWHERE if " " not in label)


def _domain_forms(domain: str) -> set[str]:
    spellings = {domain, unicode_host(domain)}
    return spellings | {fold(spelling) for spelling in spellings}


def _name_forms(text: str) -> frozenset[str]:
    """The spaced forms of one name: plain, letters spelt out, transliterated; each also with & and + as "and"."""
    plain = fold(text)
    if not has_word_character(plain):
        return frozenset((plain,))
    transliterated = () if text.isascii() else map(anyascii, readings(text))
    return frozenset(map(fold, (*spellings(text), *transliterated)))


def _with_joined(forms: frozenset[str]) -> frozenset[str]:
    return forms | {joined(form) for form in forms if has_word_character(form)}


def _leading(name: str, aliases: Iterable[str]) -> Iterator[str]:
    """The aliases that are as good as the name: its last words, or the name in another script."""
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
    spellings = {label, unicode_host(label)}
    folded = {fold(spelling) for spelling in spellings}
    return spellings | folded | {joined(form) for form in folded}


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
    return tuple(sorted(set().union(*groups) - {""}))
