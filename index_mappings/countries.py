"""The country codes that both sides accept (R4)."""

from typing import Final

import pycountry

# Kosovo's code is assigned by its users, not by ISO; everybody who trades there needs it.
COUNTRY_CODES: Final = frozenset(country.alpha_2 for country in pycountry.countries) | {"XK"}
