"""One script of many modules: each behind what it imports, texts untouched, and nothing that is not needed."""

import pytest

from service.web.bundling import bundled, compact_lines, compact_script, compact_style, modules_of

MODULES = {
    "main.js": 'import { one } from "./one.js";\nimport { two } from "../other/two.js";\none(two);\n',
    "one.js": 'import { two } from "./two.js";\n\n// Why.\nexport function one(value) {\n  return value(two);\n}\n',
    "two.js": "export const two = (text) => text;\n",
    "unused.js": "export const unused = 1;\n",
}


def test_a_module_comes_once_and_behind_all_that_it_imports() -> None:
    assert modules_of("main.js", MODULES) == ("two.js", "one.js", "main.js")
    assert bundled("main.js", MODULES) == ("const two=(text)=>text;function one(value){return value(two)}\none(two);\n")


def test_an_import_of_what_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"absent\.js"):
        bundled("main.js", {"main.js": 'import { absent } from "./absent.js";\n'})


@pytest.mark.parametrize(
    "text", ['"two  spaces // no comment"', "'it  is'", "`a  ${b}  c`", r'"a \" quoted  text"', r"(/[\s'’/]  \//u)"]
)
def test_texts_and_regular_expressions_stay_as_they_are(text: str) -> None:
    assert compact_script(f"const  found  =  {text} ;") == f"const found={text};\n"


@pytest.mark.parametrize(
    ("source", "compact"),
    [
        ("return  value", "return value\n"),
        ("a  +  +b", "a+ +b\n"),
        ("{ a(); /* why */ }", "{a()}\n"),
        ("f([\n  1,\n], {\n  b,\n});", "f([1],{b});\n"),
        ("for (; a < b;) c();", "for(;a<b;)c();\n"),
        ("a\n  b", "a\nb\n"),
        ("if (a) {\n  // Why.\n  b();\n}\n", "if(a){b()}\n"),
        ("try { b(); } catch { /* why */ }", "try{b()}catch{}\n"),
    ],
)
def test_a_space_stays_where_something_would_become_something_else(source: str, compact: str) -> None:
    assert compact_script(source) == compact


def test_styles_and_markup_lose_their_indentation() -> None:
    style = "a:hover, .b > c {\n  width: calc(1rem + 2px);\n}\n\n@media (width: 1px) { d { e: f; } }\n"

    assert compact_style(style) == ("a:hover,.b>c{width:calc(1rem + 2px)}@media (width:1px){d{e:f}}\n")
    assert compact_lines("<p>\n\n  text\n</p>\n") == "<p>\ntext\n</p>\n"
