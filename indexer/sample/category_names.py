"""The names of the sample's categories in other languages, and their synonyms.

The names of ``night-market``, which only hidden shops carry, occur nowhere else: they must be in no index (V1).
"""

from typing import Final

from indexer.sample.categories import SLUGS, category
from indexer.sample.records import CategoryNames

_LANGUAGES: Final = ("de", "fr", "es", "ja", "ar")

# slug | German | French | Spanish | Japanese | Arabic | synonyms
_TABLE: Final = """
bicycles | Fahrräder | Vélos | Bicicletas | 自転車 | دراجات | bike; e-bike; Rad
books | Bücher | Livres | Libros | 本 | كتب | Buch; novels; bookshop
coffee-tea | Kaffee & Tee | Café et thé | Café y té | コーヒーとお茶 | قهوة وشاي | espresso; matcha
computers | Rechner | Ordinateurs | Ordenadores | パソコン | حواسيب | laptop; PC; notebook
crafts | Basteln & Nähen | Loisirs créatifs | Manualidades | 手芸 | أشغال يدوية | yarn; knitting; hobby
delicatessen | Delikatessen | Épicerie fine | Productos gourmet | 珍味 | أطعمة فاخرة | cheese; gourmet
diy | Heimwerken | Bricolage | Bricolaje | 工具 | أدوات | hardware; Werkzeug
electronics | Elektronik | Électronique | Electrónica | 家電 | إلكترونيات | gadgets; audio; phones
fashion | Mode & Bekleidung | Vêtements | Ropa | 服 | ملابس | clothes; clothing; apparel
fashion-kids | Kindermode | Mode enfant | Moda infantil | 子供服 | ملابس أطفال | baby clothes; childrenswear
flowers | Blumen | Fleurs | Flores | 花 | زهور | bouquets; florist
furniture | Möbel | Meubles | Muebles | 家具 | أثاث | sofa; desks; Einrichtung
garden | Garten & Balkon | Jardin | Jardín | 庭 | حديقة | plants; lawn
gifts | Geschenke | Cadeaux | Regalos | 贈り物 | هدايا | presents; souvenirs
grocery | Lebensmittel | Épicerie | Comestibles | 食品 | بقالة | food; supermarket
health | Gesundheit | Santé & pharmacie | Salud y farmacia | 健康 | صحة وصيدلية | chemist; vitamins; Apotheke
jewellery | Schmuck | Bijoux | Joyas | 宝石 | مجوهرات | jewelry; rings; necklaces
lighting | Leuchten | Lampes & luminaires | Lámparas | 照明 | مصابيح | lamps; bulbs; lights
maps-globes | Landkarten & Globen | Cartes et globes | Mapas y globos | 地図 | خرائط | atlas
music | Musikinstrumente | Musique | Instrumentos | 音楽 | موسيقى | guitars; pianos; vinyl
online-deals | Schnäppchen | Bonnes affaires | Ofertas | 特売 | عروض | bargains; outlet
outdoor | Draußen & Wandern | Plein air | Aire libre | 登山 | تخييم | camping; hiking; tents
pets | Haustiere | Animaux | Mascotas | ペット | حيوانات أليفة | dog food; cats; aquarium
shoes | Schuhe | Chaussures | Zapatos | 靴 | أحذية | sneakers; boots
stationery | Schreibwaren | Papeterie | Papelería | 文房具 | قرطاسية | pens; notebooks; paper
toys | Spielzeug | Jouets | Juguetes | 玩具 | ألعاب | puzzles; dolls; board games
wine | Wein & Most | Vin et cidre | Vino y sidra | ワイン | نبيذ | winery; Riesling
night-market | Quillomere Nachtmarkt | Quillomere nuit | Quillomere noche | クイロミア | كويلومير | Quillomere stalls
"""


def category_names() -> tuple[CategoryNames, ...]:
    """The names of every category, by slug."""
    lines = (line.split("|") for line in _TABLE.strip().splitlines())
    named = {slug.strip(): [cell.strip() for cell in cells] for slug, *cells in lines}
    return tuple(_named(slug, *named[slug]) for slug in SLUGS)


def _named(slug: str, *cells: str) -> CategoryNames:
    *names, synonyms = cells
    return CategoryNames(
        slug=slug,
        name=category(slug).name,
        names=dict(zip(_LANGUAGES, names, strict=True)),
        synonyms=tuple(synonym.strip() for synonym in synonyms.split(";")),
    )
