"""Shops that must never be shown, as they are under review or removed (V1).

A line has a visibility, then the columns of the named shops. Their words occur nowhere else in the sample, so a search
for them in public output finds a leak.
"""

from typing import Final

HIDDEN: Final = """
under_review | Quillomere | quillomere.internal | night-market books | GB IE | Quillomere & Quint | quillpay.internal
under_review | Zathrune Optik | zathrune.internal | health | DE AT | Zathrune |
under_review | Brindlevox | brindlevox.internal | music electronics | US | BVX Audio |
under_review | Gloamstead | gloamstead.internal | night-market | - | Gloam Stead |
under_review | Fennimarch | shop.fennimarch.internal | garden | NL BE | |
under_review | Übelwitz Rabattkeller | übelwitz.internal | online-deals | DE | Uebelwitz |
under_review | Ptarmigrove | ptarmigrove.internal | outdoor | WORLDWIDE | |
under_review | Dossenbrück | dossenbrueck.internal | furniture lighting | CH | |
under_review | Вечерогляд | vecheroglyad.internal | toys night-market | RU UA | Vecheroglyad |
under_review | 霧笛屋 | muteki-ya.internal | music | JP | Mutekiya |
under_review | متجر السنجاب الخفي | sinjab-khafi.internal | toys | SA | |
under_review | Yolkmarrow's | yolkmarrow.internal | grocery | CA | |
under_review | Caravelline | caravelline.internal | fashion shoes | FR | | secure.caravelline-kasse.internal
under_review | Skrimmelby | skrimmelby.example | bicycles | DK | |
under_review | Tumbrelow | tumbrelow.test | diy | GB | |
removed | Hobnettle | hobnettle.internal | shoes | GB | Hob Nettle |
removed | Wexelgrund | wexelgrund.internal | computers night-market | DE | |
removed | Nachtfalterie | nachtfalterie.internal | fashion | AT | |
removed | Œuvrelune | oeuvrelune.internal | gifts books | FR BE | Oeuvrelune |
removed | Pelargodrome | pelargodrome.invalid | flowers | - | |
""".strip()

#: Redirects with an end that is not public: they must not be projected (A12).
HIDDEN_REDIRECTS: Final = (
    ("quillomere.internal", "vellumry.internal"),
    ("aukandarrow.internal", "ptarmigrove.internal"),
    ("hobnettle.internal", "twelve-o-eight.internal"),
    ("dossenbrueck.internal", "kiefernhaus.internal"),
)
