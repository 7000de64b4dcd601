"""The texts of the page in each language: `texts/` has one file a language, which templates and script share.

A text names its values in braces. Where it depends on a number, it has a form for each plural category of CLDR that the
language has for whole numbers, and the number is its value `count`.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from babel import Locale
from babel.numbers import format_decimal
from markupsafe import Markup, escape

LANGUAGES: Final = ("en",)
# The keys of the texts, each with its text or its forms by plural category.
Texts = Mapping[str, str | Mapping[str, str]]


class Language:
    """One language of the page."""

    def __init__(self, tag: str) -> None:
        """Read the texts; the data of CLDR are read at the first use."""
        self.tag = tag
        self.texts: Texts = json.loads(files(__package__).joinpath("texts", f"{tag}.json").read_text(encoding="utf-8"))
        self._locale = Locale.parse(tag)

    def text(self, key: str, **values: Any) -> str:  # noqa: ANN401 - values of a text
        """A text with its values; markup among them stays markup, and other values are escaped next to it."""
        text = self.texts[key]
        if not isinstance(text, str):
            text = text[self._locale.plural_form(values["count"])]
            values["count"] = self.number(values["count"])
        if any(isinstance(value, Markup) for value in values.values()):
            return Markup(escape(text)).format(**values)  # noqa: S704 - the text is escaped
        return text.format(**values)

    def number(self, number: int) -> str:
        """A whole number with its groups of digits."""
        return format_decimal(number, locale=self._locale)

    def script(self, source: str) -> str:
        """A module with the texts that a script names, so that it carries no others."""
        named = {key: text for key, text in self.texts.items() if f'"{key}"' in source}
        texts = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
        return f'export const LANGUAGE = "{self.tag}";\nexport const TEXTS = {texts};\n'
