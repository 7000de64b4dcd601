"""The languages of the page: whole, of one form, and all that the page says; and which one a visitor gets."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Final

import pytest
from babel import Locale
from markupsafe import Markup

import service.web
from index_mappings.countries import GROUP_NAMES
from service.web.languages import LANGUAGES, Language, language_of, languages, negotiated
from service.web.pages import page_script

PAGE: Final = Path(service.web.__file__).parent
SCRIPTS: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted((PAGE / "page").glob("*.js"))}
TEMPLATES: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted((PAGE / "page").glob("*.html"))}
MODULES: Final = [path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*.py"))]
ENGLISH: Final = Language("en")
OTHERS: Final = [language for tag, language in languages().items() if tag != "en"]
# As `tests/people/web/test_serving.py` has it of what a browser loads.
# Numbers of every plural category that whole numbers have in these languages.
NUMBERS: Final = (*range(200), 1_000_000)
# Keys whose text may be the same in English: words that another language has taken over, and names.
SAME: Final = frozenset(
    {
        "codes", "contact", "details", "domain_ascii", "market_BENELUX", "no", "operator", "pages", "privacy",
        "query_in", "registrar", "shops", "shops_in", "suggestions", "token",
    }
)  # fmt: skip

# A literal of a script; comments and regular expressions are none.
_LITERAL: Final = re.compile(
    r"""//[^\n]*|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`"""
    r"""|(?<=[(,=:\[!&|?])[ ]?/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"""
)
_VALUE: Final = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
# Two words, a word with a capital, or a word that joins others.
_WORDING: Final = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,}|^[A-Z][a-z]|^ [a-z]+ $|[a-z][.!]$")
_NO_WORDING: Final = ("class: ", "rel: ", "new TypeError(")
_JINJA: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_SPOKEN: Final = re.compile(r'\b(?:aria-label|placeholder|title|alt|content)="([^"]*)"')
_NAMES: Final = frozenset({"OpenAPI", "llms.txt"})


def forms(language: Language, key: str) -> dict[str, str]:
    """The forms of a text by plural category; without any, the text itself."""
    text = language.texts[key]
    return {"": text} if isinstance(text, str) else dict(text)


def placeholders(text: str) -> list[str]:
    return sorted({name for _, name, _, _ in Formatter().parse(text) if name is not None})


def literals(script: str) -> Iterator[tuple[str, str]]:
    """What precedes each literal of a script, and the literal without its values."""
    for found in _LITERAL.finditer(script):
        text = next((group for group in found.groups() if group is not None), None)
        if text is not None:
            yield script[max(0, found.start() - 20) : found.start()], _VALUE.sub("0", text)


@pytest.mark.rule("F22")
@pytest.mark.parametrize("language", OTHERS, ids=lambda language: language.tag)
def test_each_language_has_all_texts_with_the_same_placeholders(language: Language) -> None:
    assert list(language.texts) == list(ENGLISH.texts)
    for key in ENGLISH.texts:
        found = {form: placeholders(text) for form, text in forms(language, key).items()}
        assert found == dict.fromkeys(found, placeholders(next(iter(forms(ENGLISH, key).values())))), key


@pytest.mark.parametrize("language", languages().values(), ids=lambda language: language.tag)
def test_a_counted_text_has_a_form_for_each_plural_category_of_its_language(language: Language) -> None:
    needed = {Locale.parse(language.tag).plural_form(number) for number in NUMBERS}
    for key, text in ENGLISH.texts.items():
        counted = not isinstance(text, str)
        assert set(forms(language, key)) == (needed if counted else {""}), key
        assert counted == ("count" in placeholders(next(iter(forms(language, key).values())))), key


@pytest.mark.parametrize("language", OTHERS, ids=lambda language: language.tag)
def test_no_text_was_left_in_english(language: Language) -> None:
    assert {key for key, text in language.texts.items() if text == ENGLISH.texts[key]} - SAME == set()


def test_the_groups_of_countries_are_named_as_the_contract_names_them() -> None:
    assert {code: ENGLISH.market(code) for code in GROUP_NAMES} == GROUP_NAMES


def test_plurals_are_those_of_the_language() -> None:
    polish = languages()["pl"]
    assert [polish.text("shops_counted", count=number) for number in (0, 1, 2, 5, 12, 22, 1_234)] == [
        "0 sklepów", "1 sklep", "2 sklepy", "5 sklepów", "12 sklepów", "22 sklepy", "1\u00a0234 sklepy",
    ]  # fmt: skip
    assert [languages()["fr"].text("shops_counted", count=number) for number in (0, 2, 1_000_000)] == [
        "0 boutique", "2 boutiques", "1\u202f000\u202f000 de boutiques",
    ]  # fmt: skip


def test_markup_in_a_value_stays_and_all_else_is_escaped() -> None:
    text = ENGLISH.text("query_in", query=Markup("<bdi>a</bdi>"), categories="<b>")
    assert text == "<bdi>a</bdi> in &lt;b&gt;"
    assert not isinstance(ENGLISH.text("query_in", query="a", categories="<b>"), Markup)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_no_text_of_its_own(name: str) -> None:
    found = [
        text for before, text in literals(SCRIPTS[name]) if _WORDING.search(text) and not before.endswith(_NO_WORDING)
    ]
    assert found == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_no_text_of_its_own(name: str) -> None:
    source = TEMPLATES[name]
    plain = _JINJA.sub("", source)
    spoken = [text for text in _SPOKEN.findall(plain) if re.search(r"[^\W\d_]", text)]
    shown = {text.strip() for text in re.split(r"<[^>]*>", plain) if re.search(r"[^\W\d_]{2,}", text)}
    inner = [text for part in _JINJA.findall(source) for _, text in literals(part) if _WORDING.search(text)]
    # What the head says to programs.
    assert set(spoken) <= {"width=device-width, initial-scale=1", "website", "summary", "noindex"}
    assert shown <= _NAMES
    assert inner == []


def test_each_text_is_used_and_each_used_one_exists() -> None:
    sources = "\n".join((*SCRIPTS.values(), *TEMPLATES.values(), *MODULES))
    named = set(re.findall(r'\b(?:t|phrase|text)\(\s*"(\w+)"', sources))
    assert named - ENGLISH.texts.keys() == set()
    unused = {key for key in ENGLISH.texts if f'"{key}"' not in sources}
    assert unused == {f"market_{code}" for code in GROUP_NAMES}


def test_a_text_of_a_file_would_be_missed_in_a_script() -> None:
    wrong = 'make("p", {}, "No shop fits exactly"); x = `${count} shops found.`; y = " or ";'
    assert [text for before, text in literals(wrong) if _WORDING.search(text)] == [
        "No shop fits exactly", "0 shops found.", " or ",
    ]  # fmt: skip


def test_a_key_that_is_only_an_argument_is_a_number_in_the_script() -> None:
    scripts = {"a.js": 't("copy"); phrase("try", {}); t(is ? "yes" : "no"); make("details", t("details"));'}
    made = ENGLISH.modules(scripts)
    assert made["a.js"] == 't(0); phrase(3, {}); t(is ? "yes" : "no"); make("details", t("details"));'
    texts = json.loads(re.search("TEXTS = (.*);", made["language.js"])[1])  # type: ignore[index]
    assert texts == {
        "0": "Copy", "3": "Try {examples}", "yes": "Yes", "no": "No", "details": "Details",
    }  # fmt: skip


def test_a_script_has_the_texts_of_one_language() -> None:
    script = page_script(languages()["de"]).body.decode()
    assert "Tippfehler" not in script  # which only a template shows
    assert "Kein Shop passt genau" in script
    assert "No shop fits exactly" not in script


@pytest.mark.parametrize(
    ("asked", "tag"),
    [
        ("", "en"),
        ("*", "en"),
        ("de", "de"),
        ("PL", "pl"),
        ("de-AT,en;q=0.5", "de"),
        ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"),
        ("de;q=0.3, it ; q=0.9", "it"),
        ("de;q=0, nl;q=0.1", "nl"),
        ("ja,zh-Hans;q=0.9", "en"),
        ("ja,es-419;q=0.4,*;q=0.1", "es"),
        ("de;q=x, ;;, pl;q=0.001", "pl"),
        ("en-US,en;q=0.9,de;q=0.8", "en"),
        (",".join(["x" * 8] * 5_000), "en"),
    ],
)
def test_the_preferred_language_of_the_browser_is_taken(asked: str, tag: str) -> None:
    assert negotiated(asked) == tag


@pytest.mark.parametrize(
    ("query", "cookie", "asked", "tag"),
    [
        (b"", "", "", "en"),
        (b"", "", "it", "it"),
        (b"", "a=b; lang=pl", "it", "pl"),
        (b"q=x&lang=nl", "lang=pl", "it", "nl"),
        (b"lang=xx", "lang=yy", "it", "it"),
        (b"lang=", "lang=../en", "", "en"),
        (b"lang=DE&lang=de", "", "", "en"),
    ],
)
def test_a_choice_in_the_address_precedes_a_remembered_one_and_that_the_browser(
    query: bytes, cookie: str, asked: str, tag: str
) -> None:
    headers = [(b"cookie", cookie.encode()), (b"accept-language", asked.encode())]
    scope = {"type": "http", "query_string": query, "headers": [one for one in headers if one[1]]}
    assert language_of(scope) == tag


def test_all_languages_are_offered() -> None:
    assert set(LANGUAGES) == {path.stem for path in (PAGE / "texts").iterdir()}
