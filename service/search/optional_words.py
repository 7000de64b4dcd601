"""The words for a shop, and the words that only join others, by language (M3 f).

Compiled by hand. The words for a shop are the usual ones for a shop, its seller and "online", in singular and plural,
of the languages of X2's articles, of Slavic languages, Turkish, Greek, Arabic, Chinese, Japanese and Korean. The
joining words are articles, prepositions and conjunctions, of which Snowball's stop word lists
(https://snowballstem.org/algorithms/) have many more, and words of wishes that name no goods: buy, best, cheap.
"""

from typing import Final

from index_mappings.text import fold

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
