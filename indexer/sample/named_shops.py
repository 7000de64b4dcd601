"""Shops with difficult names, written by hand: apostrophes, joined words, equal names, a single letter.

One shop a line: name | domain | categories | countries ("-": not stated) | aliases, by ";" | checkout hosts. Domains
are in Unicode here and A-labels in the catalogue. All are below names that can't be registered (.internal, RFC 2606,
RFC 6761).
"""

from typing import Final

LATIN: Final = """
Lumen & Larch | lumen-larch.internal | lighting furniture | GB IE DE US JP | Lumen and Larch; L&L | ll.tillpost.internal
Kiefernhaus | kiefernhaus.internal | furniture | DE AT CH | KH Möbel |
Kiefernhaus Restposten | store.kiefernhaus.internal | furniture online-deals | DE | Kiefernhaus Outlet |
Northpine | northpine.internal | outdoor shoes | US CA | North Pine |
Northpine Europe | northpine.test | outdoor | DE FR NL | North Pine |
Auk & Arrow | aukandarrow.internal | outdoor bicycles | GB SE NO | AA Outfitters |
Arrow Outfitters | arrow-outfitters.internal | outdoor | GB | AA Outfitters |
Vellumry | vellumry.internal | books stationery | FR BE | Vellumry Paper Rooms |
Old Vellumry | oldvellumry.internal | books stationery | FR | Vellumry Paper Rooms; Vellumry until 2021 |
Kompass | de.kompass.internal | maps-globes books | DE AT | Kompass Landkarten |
Kompass | fr.kompass.internal | books | FR | |
Kompass | kompass-fritid.internal | outdoor | SE DK | Kompass Fritid |
Pinta [AR] | pinta-ar.internal | wine grocery | AR | Pinta Argentina |
Pinta [UY] | pinta-uy.internal | wine | UY | Pinta Uruguay |
Pinta (Mayorista) | mayorista.pinta.internal | wine gifts | AR UY CL | |
Øresø Møbler | øresø-møbler.internal | furniture lighting | DK SE | Oereso Moebler; Oreso |
Blåbær & Æble | blaabaer-aeble.internal | grocery delicatessen | DK NO | B&Æ |
Łąka i Las | laka-i-las.internal | garden flowers | PL | Laka |
Žluťásek | zlutasek.internal | toys fashion-kids | CZ SK | |
Đurđica | djurdjica.internal | flowers gifts | HR BA RS | Djurdjica; Ђурђица |
Þórsnes Bækur | thorsnes.internal | books | IS | Thorsnes Books |
Işıl Çarşı | isil-carsi.internal | jewellery gifts | TR | Isil |
İnci Dükkânı | inci-dukkani.internal | jewellery | TR XK AL | |
Weißdorn & Söhne | weissdorn-soehne.internal | garden diy | DE AT | Weissdorn; W & S |
Mäusezähnchen | mäusezähnchen.internal | fashion-kids toys | DE CH | Maeuse |
Straußenfeder | straussenfeder.internal | gifts | AT | |
Nord + Süd | nordundsued.internal | outdoor fashion | DE | Nord und Süd; N+S |
Zwölf Gänse | zwoelf-gaense.internal | delicatessen grocery | DE | 12 Gänse |
K&R | kr-werkzeug.internal | diy | DE CH AT | Kranz & Reiter |
Q7 | q-seven.internal | electronics computers | US KR JP | Queue Seven |
K | k-only.internal | stationery | FI | |
Ö | ö.internal | lighting | SE | Lilla Ö |
Ud | ud.internal | music | EG SA AE | عود |
7 | seven-oboes.internal | music | - | |
1208 | twelve-o-eight.internal | shoes fashion | IT FR | Milleduecentotto |
!!! | tripleshout.internal | music | US | |
★ | star-sign.internal | gifts toys | - | |
C++ Corner | cpp-corner.internal | computers books | WORLDWIDE | |
Stella's | stellas-attic.internal | fashion jewellery | US CA | Stella's Attic |
Stellas | stellas.internal | fashion | SE | |
O’Mara Wool | omara-wool.internal | crafts fashion | IE GB | O'Mara; OMara Woollens |
Rock´n´Knit | rocknknit.internal | crafts music | DE | Rock and Knit |
L'Encre d’Ondine | encre-ondine.internal | stationery books | FR BE CH LU | Ondine |
Ma‘ake Lei | maake-lei.internal | flowers | US NZ | Maake |
Velora.internal | velora.internal | health | NL BE | Velora |
Breezling.internal | breezy-parcels.internal | online-deals | GB | |
Tidewrack | tidewrack.internal | jewellery crafts | GB | Tide Wrack; Tide-wrack |
Tide Wreck Diving | tide-wreck.internal | outdoor | AU NZ | |
McTavvish & Daughters | mctavvish.internal | fashion | GB | Mc Tavvish |
The Honourable Guild of Lantern, Kite and Paper Boat Makers of Low Wen | lowwen.internal | toys crafts | GB | HGLKP |
Ponderel Lane | ponderel.internal | books gifts | US | |
Ponderel Lane | ponderel-lane.internal | furniture | AU | |
Fernweh Kartell | abc-handel24.internal | online-deals outdoor | DE AT | Fernwehkartell |
Mirepoix & Marrow | soup.internal | grocery delicatessen | FR US | Mirepoix Provisions |
Hazelmouse | hzlms.internal | toys | GB | Hazel Mouse |
Bramblewick Bicycles Berlin | b3.internal | bicycles | DE | Bramblewick |
Twelve Moons Tea | teepunkt.internal | coffee-tea | GB DE | formerly Crescent Kettle |
Tall Heron Office Supply | tall-heron-office-supply.internal | stationery | US | THOS |
Ñandú Norte | nandu-norte.internal | outdoor fashion | AR CL | Nandu |
Açaí da Serra | acai-da-serra.internal | grocery health | BR PT | |
Pão & Pólen | pao-polen.internal | grocery | BR | Pao e Polen |
Garçonnière Bleue | garconniere-bleue.internal | furniture | FR | |
Ħanut tal-Baħar | hanut.internal | grocery | MT | Hanut |
Tiệm Sen Hồng | tiem-sen-hong.internal | flowers gifts | VN | Sen Hong |
Őszirózsa | oszirozsa.internal | flowers | HU | Oszirozsa |
Șapte Nuci | sapte-nuci.internal | grocery | RO MD | Sapte Nuci |
Jūrmalas Vējš | jurmalas-vejs.internal | outdoor | LV LT EE | |
Ŋalli | ngalli.internal | crafts | NO SE FI | |
Zebra,Comma;Dash — Ltd. | zebra-comma.internal | stationery | GB | ZCD | zc.tillpost.internal
shoutcase | shoutcase.internal | electronics | US | SHOUTCASE; ShoutCase |
ＷＩＤＥ文庫 | wide-bunko.internal | books | JP | WIDE Bunko |
ﬁlament № 5 | filament-no5.internal | lighting diy | FR | Filament No 5 |
Cargo/Bike/Co | cargo-bike-co.internal | bicycles | NL DK | C/B/C |
""".strip()

#: Shops on domains that RFC 2606 and RFC 6761 reserve: found like any other, but their codes are withheld (A4).
RESERVED: Final = """
Larkspur Test Kitchen | larkspur.test | grocery | GB | |
Mockernut | mockernut.test | toys | US | |
Paperboat Sandbox | paperboat.example | stationery gifts | GB FR | |
Gallowglass | shop.gallowglass.example | fashion | IE | Gallow Glass |
Brasswren | brasswren.example.com | music | US CA | |
Dovecote Dry Run | dovecote.example.net | garden | NL | |
Samplewood | samplewood.example.org | furniture | DE | Sample Wood |
Nulland | nulland.invalid | electronics | - | |
Homeport | homeport.localhost | computers | WORLDWIDE | |
""".strip()

#: (from, to, why): pairs of public shops that look like one merchant; each pair shares a coupon code.
LOOKALIKES: Final = (
    ("store.kiefernhaus.internal", "kiefernhaus.internal", "same registrable domain"),
    ("northpine.test", "northpine.internal", "same main label"),
    ("arrow-outfitters.internal", "aukandarrow.internal", "shared alias"),
    ("oldvellumry.internal", "vellumry.internal", "redirect"),
    ("fr.kompass.internal", "de.kompass.internal", "same name"),
)

#: The shop with a code for every way of being usable or withheld, an offer for every kind of URL, and all networks.
EDGE_CASES: Final = "zebra-comma.internal"

#: Shops that should rank first in a demonstration; all others have a random popularity.
POPULAR: Final = {
    "lumen-larch.internal": 0.9312,
    "kiefernhaus.internal": 0.7104,
    "de.kompass.internal": 0.6421,
    "northpine.internal": 0.6098,
    "midori-shoten.internal": 0.5837,
    "encre-ondine.internal": 0.5512,
}
