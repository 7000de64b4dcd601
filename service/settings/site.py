"""The settings of the operator's own house: how its pages name it, look and link, and what they show beyond the plain.

The accent is checked at the start against the backgrounds of both themes, which `service/web/page/page.css` has.
"""

from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from shop_directory.settings.reading import COMMA_SEPARATED, EnvironmentSettings, variable

# What WCAG 2.2 asks of text (1.4.3), as links have the accent.
LEAST_CONTRAST: Final = 4.5
# Relative luminance: below this, sRGB is linear; and the weights of red, green and blue.
_LINEAR_BELOW: Final = 0.04045
_WEIGHTS: Final = (0.2126, 0.7152, 0.0722)
# By theme: the backgrounds of the page and of what stands on it, and how a colour gains contrast to them.
THEMES: Final = {"light": (("#f7f5f0", "#ffffff"), "darker"), "dark": (("#101514", "#181f1d"), "lighter")}
# By suffix: the media types that the operator's logo may have. A larger file would delay each first visit.
LOGO_TYPES: Final = {
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".webp": b"image/webp",
    ".jpg": b"image/jpeg",
    ".jpeg": b"image/jpeg",
}
MAX_LOGO_BYTES: Final = 100_000

_NOT_BLANK: Final = r"\S"
_LINK_PATTERN: Final = r"^(?:https://[^\s\"<>\\]+|mailto:[^\s\"<>\\@]+@[^\s\"<>\\@]+)$"
_LINK: Final = "an https:// or mailto: URL"

Colour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
Link = Annotated[str, Field(pattern=_LINK_PATTERN)]


class SiteSettings(EnvironmentSettings):
    """The settings of the pages for people."""

    site_name: str = Field(
        "Shop Directory",
        title="The name of the directory on its pages.",
        pattern=_NOT_BLANK,
        max_length=60,
        description="a text of 1 to 60 characters",
    )
    site_tagline: str = Field(
        "Know a shop before you buy",
        title="The heading of the start page.",
        pattern=_NOT_BLANK,
        max_length=120,
        description="a text of 1 to 120 characters",
    )
    site_logo: Path | None = Field(
        None,
        title="The image beside the name.",
        description=f"an .svg, .png, .webp or .jpg file of at most {MAX_LOGO_BYTES:,} bytes that can be read",
    )
    site_imprint: Link | None = Field(None, title="The link to the operator's imprint.", description=_LINK)
    site_privacy: Link | None = Field(None, title="The link to the operator's privacy policy.", description=_LINK)
    site_contact: Link | None = Field(None, title="The link to contact the operator.", description=_LINK)
    site_sources: Path | None = Field(
        None,
        title="Where the catalogue is from, with licences: the footer links to it by its first line.",
        description=f"a text file in UTF-8 of at most {MAX_LOGO_BYTES:,} bytes that can be read",
    )
    site_token_help: str | None = Field(
        None,
        title="How one gets an API token from this operator; the page shows it, and links to a URL.",
        pattern=_NOT_BLANK,
        max_length=300,
        description=f"a text of up to 300 characters, or {_LINK}",
    )
    site_accent: Annotated[tuple[Colour, Colour] | None, *COMMA_SEPARATED] = Field(
        None,
        title="The colour of links and buttons in the light theme, and that in the dark one.",
        description="two colours such as #0d6655,#6fd0b5, each with a contrast of 4.5 to the backgrounds of its theme",
    )
    site_shop_logos: bool = Field(
        False,
        title="Whether the page loads the logos of shops, from their own hosts: visitors' browsers ask these, too.",
    )
    site_sitemap: bool = Field(
        False, title="Whether /sitemap.xml lists the addresses of all public shops and categories. Needs public_url."
    )

    def contradictions(self) -> Iterator[str]:
        """A logo that can't be served, and an accent that is hard to read."""
        yield from super().contradictions()
        for name, is_right in (("site_logo", _is_logo), ("site_sources", _is_text)):
            path: Path | None = getattr(self, name)
            if path is not None and not is_right(path):
                yield f"{variable(name)} is wrong: it must be {type(self).model_fields[name].description}."
        for (theme, (backgrounds, direction)), colour in zip(THEMES.items(), self.site_accent or (), strict=False):
            least = min(contrast(colour, background) for background in (*backgrounds, tint(colour, backgrounds[-1])))
            if least < LEAST_CONTRAST:
                yield (
                    f"{variable('site_accent')} is wrong: the colour of the {theme} theme has a contrast of "
                    f"{floor(10 * least) / 10} to its backgrounds and needs {LEAST_CONTRAST}; a {direction} one has "
                    "more."
                )


def _is_logo(path: Path) -> bool:
    return path.suffix.lower() in LOGO_TYPES and _content(path) is not None


def _is_text(path: Path) -> bool:
    try:
        return bool((_content(path) or b"").decode().strip())
    except UnicodeDecodeError:
        return False


def _content(path: Path) -> bytes | None:
    """The content of a file; None if it can't be read, is empty or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_LOGO_BYTES + 1)
    except OSError:
        return None
    return content if 0 < len(content) <= MAX_LOGO_BYTES else None


def tint(colour: str, surface: str) -> str:
    """The background of marked, chosen or hovered items, in the theme of a surface."""
    return mixed(colour, surface, 0.08)


def mixed(colour: str, other: str, share: float) -> str:
    """A mixture of two colours of the form #rrggbb in sRGB, with this share of the first one."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(one * share + two * (1 - share)) for one, two in pairs).hex()


def contrast(one: str, other: str) -> float:
    """The contrast of two colours of the form #rrggbb, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2, from 0 to 1."""
    channels = (value / 255 for value in bytes.fromhex(colour[1:]))
    linear = [part / 12.92 if part <= _LINEAR_BELOW else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return sum(weight * part for weight, part in zip(_WEIGHTS, linear, strict=True))
