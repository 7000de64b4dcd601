"""Shops with names in other scripts than Latin, or in two scripts; the columns are those of the named shops.

Names have the joiners that a script needs (U+200C in Persian, U+200D in Sinhala); no shop is a real merchant.
"""

from typing import Final

WORLD: Final = """
みどり商店 | midori-shoten.internal | grocery flowers | JP | Midori Shoten; ミドリ商店 |
青空ぶんぐ堂 | 青空ぶんぐ堂.internal | stationery books | JP | Aozora Bungudo |
月 | tsuki.internal | lighting | JP | Tsuki |
森と灯 | mori-to-akari.internal | furniture lighting | JP | もりとあかり |
カモメ・マルシェ | kamome-marche.internal | grocery | JP | カモメマルシェ |
Kumo 雲 Store | kumo-store.internal | fashion | JP US | くも |
한빛서점 | hanbit-seojeom.internal | books | KR | Hanbit Seojeom |
별 | byeol.internal | jewellery | KR | Byeol |
솔바람 상점 | 솔바람.internal | outdoor | KR | Solbaram |
달토끼공방 Moonhare | moonhare.internal | crafts toys | KR JP | Moon Hare |
云杉书屋 | yunshan-shuwu.internal | books | CN SG | 雲杉書屋; Yunshan Books |
灯 | deng.internal | lighting | CN | |
竹影茶坊 | zhuying.internal | coffee-tea | CN TW HK | 竹影 |
石榴小铺 | shiliu.internal | gifts | CN | Shiliu |
ร้านดาวเหนือ | dao-nuea.internal | outdoor | TH | ดาวเหนือ; Dao Nuea |
ตลาดใบบัวน้อย | bai-bua.internal | grocery flowers | TH | Bai Bua |
Ο Ελαιώνας | elaionas.internal | delicatessen grocery | GR CY | Elaionas |
Το Φανάρι της Δανάης | fanari-danais.internal | lighting | GR | Fanari |
Солнечный Дом | solnechny-dom.internal | furniture garden | RU KZ | Solnechny Dom; Солнышко |
Ёжик и Сова | ёжик.internal | toys fashion-kids | RU BY | Ezhik i Sova |
№ 9 Парфюмъ | parfum-nine.internal | health | RU | |
Крамниця Вітряк | vitriak.internal | crafts | UA | Vitriak |
Їжачок | yizhachok.internal | toys | UA PL | Їжак |
Къща Липа | kashta-lipa.internal | health | BG | Kashta Lipa |
Кућа Орах | kuca-orah.internal | grocery | RS BA | Kuća Orah |
Дом Meadow | dom-meadow.internal | furniture | RU GB | Dom Meadow |
Грачи-М | grachi-m.internal | music electronics | RU | Грачи; Grachi |
متجر الياسمين | yasmin-store.internal | flowers gifts | SA AE | Matjar al Yasmin |
دكان النخلة | dukkan-nakhla.internal | grocery | EG JO | Dukkan an Nakhla |
مَكتبة الغيمة | ghaima-books.internal | books | MA TN | مكتبة الغيمة |
خانه‌ی مهتاب | mahtab.internal | lighting | IR | خانه مهتاب; Mahtab |
چراغ خانہ | chiragh.internal | lighting | PK | Chiragh Khana |
חנות הגפן | hanut-hagefen.internal | wine delicatessen | IL | HaGefen |
בית הרימון Rimona | rimona.internal | jewellery | IL US | הרימון |
Հայ Տուն | hay-tun.internal | crafts gifts | AM | Hay Tun |
ქართული სახლი | kartuli-sakhli.internal | furniture wine | GE | Kartuli Sakhli |
მზე | mze.internal | lighting | GE | |
दीपक भंडार | deepak-bhandar.internal | lighting gifts | IN | Deepak Bhandar |
नीम घर | neem-ghar.internal | health | IN NP | नीमघर |
শিউলি ঘর | shiuli-ghar.internal | flowers | BD IN | Shiuli |
மயில் கடை | mayil-kadai.internal | fashion | IN LK SG | Mayil |
శంఖం బజార్ | shankham.internal | jewellery | IN | |
ශ්‍රී නෙළුම් | sri-nelum.internal | coffee-tea | LK | Sri Nelum |
ሰላም ሱቅ | selam-suk.internal | coffee-tea | ET | Selam Suk |
ហាងផ្កាឈូក | phka-chhuk.internal | flowers | KH | |
ຮ້ານຈຳປາ | champa.internal | gifts | LA | Champa |
""".strip()
