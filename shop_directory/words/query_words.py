"""The words of a query of find_shop, each with what was typed for it; hosts stand for themselves (M3, M6).

The words for a shop, and the words that only join others (M3 f), are compiled by hand. The former are the usual ones
for a shop, its seller and "online", in singular and plural, of the languages of X2's articles, of Slavic languages,
Turkish, Greek, Arabic, Chinese, Japanese and Korean. The latter are articles, prepositions and conjunctions, of which
Snowball's stop word lists (https://snowballstem.org/algorithms/) have many more, and words of wishes that name no
goods: buy, best, cheap.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from index_mappings.forms import QueryForms, folded_labels, query_forms
from index_mappings.hosts import domain_parts, has_dot, reduce_host, unicode_host
from index_mappings.text import fold, typed_words, words_of

_SHOP: Final = {
    "en": "shop shops store stores retailer retailers seller sellers online webshop webshops onlineshop onlineshops",
    "de": "Laden Läden Geschäft Geschäfte Händler Onlineshop Onlineshops Verkäufer",
    "fr": "boutique boutiques magasin magasins vendeur vendeurs ligne",
    "es": "tienda tiendas vendedor vendedores línea",
    "it": "negozio negozi bottega botteghe venditore venditori",
    "nl": "winkel winkels webwinkel webwinkels verkoper verkopers",
    "pl": "sklep sklepy sprzedawca sprzedawcy internetowy internetowe",
    "cs": "obchod obchody prodejna prodejny prodejce eshop eshopy",
    "sk": "obchod obchody predajňa predajne predajca",
    "ru": "магазин магазины лавка лавки продавец продавцы онлайн",
    "uk": "магазин магазини крамниця крамниці продавець продавці",
    "bg": "магазин магазини търговец търговци",
    "hr": "trgovina trgovine prodavnica prodavnice dućan dućani",
    "sr": "продавница продавнице радња радње",
    "sl": "trgovina trgovine prodajalna prodajalne",
    "tr": "mağaza mağazalar mağazası mağazaları dükkan dükkân dükkanlar satıcı satıcılar",
    "el": "κατάστημα καταστήματα μαγαζί μαγαζιά πωλητής πωλητές",
    "ar": "متجر متاجر محل محلات بائع",
    "zh": "商店 店 店铺 店鋪 网店 網店 商城 线上 線上 在线",
    "ja": "店 お店 店舗 ショップ ストア 通販 オンライン",
    "ko": "가게 상점 매장 쇼핑몰 스토어 샵 숍 온라인",
}
# Apart from words that every wish may have, no top-level domain of a country is among these: it says where (M3 e).
_JOINING: Final = {
    "en": "for in of the a an and with from to near me on or my where that which sell sells selling buy best cheap",
    "de": "für in von mit und der die das den dem des ein eine einen aus zum zur bei kaufen günstig günstige billig "
    "billige beste besten",
    "fr": "pour de du des et avec en le la les un une à aux dans chez acheter pas cher meilleur meilleurs",
    "es": "para de del y con en el la los las un una a comprar barato baratos mejor mejores",
    "it": "per di del della dei delle e con in lo la gli le un una a da comprare migliore migliori",
    "nl": "voor van en met in de het een uit bij te koop kopen goedkoop goedkope beste",
    "pl": "dla do z ze w we i kupić tanie najlepsze",
    "cs": "pro do z ze v a s koupit levné nejlepší",
    "sk": "pre do z zo v vo a s kúpiť lacné najlepšie",
    "ru": "для в во из на и с от купить лучшие дешевые",
    "uk": "для в у з із на і й та від купити кращі дешеві",
    "bg": "за в от на и с със купи",
    "hr": "u iz i s od kupiti",
    "sr": "за у из на и с са од",
    "sl": "v iz in s z od kupiti",
    "tr": "için ve ile en iyi ucuz satın",
    "el": "για και με σε από στο στη στην στα το τα η ο οι",
    "ar": "في من على و مع إلى شراء",
    "zh": "的 和 在 买 買",
    "ja": "の と で を",
    "ko": "의 와 과 및",
}

JOINING_WORDS: Final = frozenset(fold(word) for words in _JOINING.values() for word in words.split())
OPTIONAL_WORDS: Final = JOINING_WORDS | {fold(word) for words in _SHOP.values() for word in words.split()}


@dataclass(slots=True)  # not frozen: each search creates some
class QueryWord:
    """A folded word at one place of a query, and how answers spell it.

    `token` is the number of its white-space token, `host` the host that this is. A suffix is a label of that host's
    public suffix, not of its main label.
    """

    text: str
    typed: str
    token: int
    host: str | None = None
    is_suffix: bool = False


@dataclass(slots=True)
class FindForms:
    """A query of find_shop: its forms, its words in order, and the white-space tokens that words are in, by number.

    There are no words in punctuation alone.
    """

    forms: QueryForms
    words: tuple[QueryWord, ...]
    tokens: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct folded words, in order."""
        return tuple(dict.fromkeys(word.text for word in self.words))

    def without(self, missing: Collection[str]) -> "FindForms":
        """The query without some words, and without the suffixes of hosts of which no other word is left."""
        left = tuple(word for word in self.words if word.text not in missing)
        hosts = {word.token for word in left if not word.is_suffix}
        left = tuple(word for word in left if not word.is_suffix or word.token in hosts)
        texts = list(self._texts_of_tokens(left))
        # Words have the numbers of their tokens among the tokens that are left.
        numbers = {token: number for number, token in enumerate(dict.fromkeys(word.token for word in left))}
        words = tuple(QueryWord(one.text, one.typed, numbers[one.token], one.host, one.is_suffix) for one in left)
        return FindForms(query_forms(" ".join(texts)), words, tuple(texts))

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
        # The most frequent case: one word, which is no host.
        return FindForms(forms, (QueryWord(forms.words[0], tokens[0], 0),), tokens)
    if text.isascii() and "".join(tokens).isalnum():
        # Each token is one word, and there is no dot.
        plain = [QueryWord(word, tokens[number], number) for number, word in enumerate(forms.words)]
        return FindForms(forms, tuple(plain), tokens)
    words = (word for number, token in enumerate(tokens) for word in _words_of_token(token, number))
    return FindForms(forms, tuple(words) if forms.words else (), tokens)


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
        yield QueryWord(text, typed, number)


def runs(words: Sequence[QueryWord], longest: int) -> Iterator[tuple[int, int]]:
    """The bounds of each run of neighbouring words, suffixes of hosts excepted, of at most so many words."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + longest, len(words)) + 1):
            if words[end - 1].is_suffix:
                break
            yield start, end
