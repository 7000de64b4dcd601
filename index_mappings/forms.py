"""All the ways in which a shop's name and domain may be typed: full forms, keys, words and infixes (X2).

They are made once, when a shop is projected; a query is folded without variants and compared with them (X3).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from anyascii import anyascii

from index_mappings.hosts import domain_parts, has_dot, reduce_host, unicode_host
from index_mappings.text import fold, has_word_character, is_blank, joined, script_starts, scripts_of

_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
# Labels of public suffixes that say nothing of a shop.
_ANYWHERE: Final = frozenset(("com", "co", "net", "org"))
_AND: Final = str.maketrans({"&": " and ", "+": " and ", "＆": " and ", "＋": " and "})


@dataclass(frozen=True, slots=True)
class ShopForms:
    """What a shop can be found by; every tuple is sorted and without repeats.

    Attributes:
        names: whole names and the whole domain; the main label where a name is spelt like a domain (`CDON.com`).
        leading: of these the name, and aliases that are its last words or in another script: what most people type.
        full: whole names, whole domain, main label.
        keys: where the beginning of a query may begin: each word of a name, the domain, each of its labels.
        words: single words of the names and of the main label.
        infixes: names without spaces, and the domain without its public suffix.
        labels: of the domain those around the main label, each in one word, that count next to another word (M3 e).
        dotted: of full forms and keys those that only a domain with labels left of its main label gives: the typeahead
            takes their beginnings for evidence only where the query has a dot (M9).
    """

    names: tuple[str, ...]
    leading: tuple[str, ...]
    full: tuple[str, ...]
    keys: tuple[str, ...]
    words: tuple[str, ...]
    infixes: tuple[str, ...]
    labels: tuple[str, ...] = ()
    dotted: tuple[str, ...] = ()


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
    return _whole_forms((name, *aliases))


def shop_forms(name: str, aliases: Iterable[str], domain: str) -> ShopForms:
    """All forms of a shop.

    Args:
        name: as in the catalogue.
        aliases: other names.
        domain: reduced by R1 (A-labels).
    """
    named = sorted({form for text in (name, *aliases) for form in _name_forms(text)})
    spaced = [form for form in named if has_word_character(form)]
    unspaced = [joined(form) for form in spaced]
    parts = domain_parts(domain)
    spelt_main = unicode_host(parts.main_label)
    label_forms = {label: _label_forms(label) for label in parts.labels}  # the main label is one of them
    main_forms = label_forms[parts.main_label]
    domains = _domain_forms(domain)
    by_domain = [text for text in (name, *aliases) if _spells_label(text, parts.main_label)]
    pieces = [piece for part in spelt_main.split("-") for piece in fold(part).split()]
    leading = _unique(_whole_forms((name, *_leading(name, aliases))), main_forms if name in by_domain else ())
    own_keys = {*named, *(tail for form in spaced for tail in _tails(form)), *unspaced, *main_forms, *pieces}
    by_labels: set[str] = set()
    if len(parts.labels) > 1:
        by_labels = {*domains, *(form for label in parts.labels[:-1] for form in label_forms[label])}
    return ShopForms(
        names=_unique(named, unspaced, domains, main_forms if by_domain else ()),
        leading=leading,
        full=_unique(named, unspaced, domains, main_forms),
        keys=_unique(own_keys, domains, by_labels),
        words=_unique((word for form in spaced for word in form.split()), pieces),
        infixes=infixes_of((*named, *unspaced), domain),
        labels=labels_of(domain),
        dotted=_unique(by_labels - own_keys),
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


def _name_forms(text: str) -> Iterator[str]:
    """The spaced forms of one name: plain, umlauts spelt out, transliterated; each also with & and + as "and"."""
    plain = fold(text)
    if not plain:
        return
    if not has_word_character(plain):
        yield plain
        return
    for reading in dict.fromkeys((text, text.translate(_AND))):
        if reading.isascii():
            yield fold(reading)  # there is nothing to spell in another way
            continue
        for variant in dict.fromkeys((reading, normalize("NFC", reading).translate(_UMLAUTS), anyascii(reading))):
            if folded := fold(variant):
                yield folded


def _whole_forms(names: Iterable[str]) -> tuple[str, ...]:
    spaced = {form for name in names for form in _name_forms(name)}
    return _unique(spaced, (joined(form) for form in spaced if has_word_character(form)))


def _leading(name: str, aliases: Iterable[str]) -> Iterator[str]:
    """The aliases that are as good as the name: its last words, or the name in another script."""
    own = fold(name)
    for alias in aliases:
        folded = fold(alias)
        scripts = scripts_of(folded)
        if f" {own}".endswith(f" {folded}") or (scripts and not scripts & scripts_of(own)):
            yield alias


def _spells_label(name: str, label: str) -> bool:
    """Whether a name is spelt like a domain with this main label."""
    host = reduce_host(name) if has_dot(name) and not any(map(str.isspace, name.strip())) else None
    return host is not None and domain_parts(host).main_label == label


def _label_forms(label: str) -> set[str]:
    spellings = {label, unicode_host(label)}
    folded = {fold(spelling) for spelling in spellings}
    return spellings | folded | {joined(form) for form in folded}


def _tails(form: str) -> Iterator[str]:
    """The text from each later word start to the end, spaced or not."""
    position = form.find(" ")
    while position != -1:
        yield form[position + 1 :]
        position = form.find(" ", position + 1)
    for start in script_starts(form):
        yield form[start:]


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*groups) - {""}))
