"""The name, title, version and icon of the service, as every transport states them."""

from typing import Final

SERVICE: Final = "shop-directory"
TITLE: Final = "Shop Directory"
VERSION: Final = "0.1.1"
ICON_PATH: Final = "/assets/icon.svg"
