"""Which rules the tests name, read from their source.

Nothing is imported or run, so the answer is the same when only some tests are selected or their engines are missing.
Marks are seen on functions, on classes, in `pytestmark`, and in the `marks=` of a parameter.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeGuard

_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class MarkedTest:
    """A test and the rules that it claims.

    Attributes:
        location: "file:line name".
        rules: ids, by any of the ways of marking.
        asserts: whether something in it can fail by design: an assertion, `pytest.raises` or a call of `assert_...`.
    """

    location: str
    rules: frozenset[str]
    asserts: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """One mark, on a test or not.

    Attributes:
        location: "file:line".
        rule: the id; None when it is not written out and so can't be read.
    """

    location: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class Marks:
    """What the files say: their tests and each mention of a rule."""

    tests: tuple[MarkedTest, ...]
    mentions: tuple[Mention, ...]


def marks_of_source(source: str, file: str) -> Marks:
    """The marks of one file.

    Raises:
        SyntaxError: the source is not Python.
    """
    tree = ast.parse(source, filename=file)
    mentions = [
        Mention(f"{file}:{mark.lineno}", rule)
        for mark in ast.walk(tree)
        if _is_rule_mark(mark)
        for rule in _arguments(mark)
    ]
    # pytest takes tests from files of these names only: what it never runs proves nothing.
    name = Path(file).name
    runs = name.startswith("test_") or name.endswith("_test.py")
    tests = _tests(tree.body, file, frozenset()) if runs else ()
    return Marks(tuple(tests), tuple(mentions))


def marks_of_tree(root: Path) -> Marks:
    """The marks of all Python files below a directory, files named relative to its parent."""
    files = [
        marks_of_source(path.read_text(encoding="utf-8"), path.relative_to(root.parent).as_posix())
        for path in sorted(root.rglob("*.py"))
    ]
    return Marks(
        tuple(test for marks in files for test in marks.tests),
        tuple(mention for marks in files for mention in marks.mentions),
    )


def _tests(body: list[ast.stmt], file: str, outer: frozenset[str]) -> Iterator[MarkedTest]:
    inherited = outer.union(*(_rules(value) for node in body if (value := _marks_of_all(node))))
    for node in body:
        if isinstance(node, (*_FUNCTION, ast.ClassDef)):
            rules = inherited.union(*map(_rules, node.decorator_list))
            if isinstance(node, ast.ClassDef):
                if node.name.startswith("Test"):
                    yield from _tests(node.body, file, rules)
            elif node.name.startswith("test"):
                asserts = any(_can_fail(inner) for inner in ast.walk(node))
                yield MarkedTest(f"{file}:{node.lineno} {node.name}", rules, asserts)


def _marks_of_all(node: ast.stmt) -> ast.expr | None:
    """What `pytestmark` is set to, where this does it."""
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            return value
        case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=value):
            return value
    return None


def _rules(expression: ast.expr) -> frozenset[str]:
    marks = filter(_is_rule_mark, ast.walk(expression))
    return frozenset(rule for mark in marks for rule in _arguments(mark) if rule is not None)


def _is_rule_mark(node: ast.AST) -> TypeGuard[ast.Call]:
    match node:
        case ast.Call(func=ast.Attribute(attr="rule", value=ast.Attribute(attr="mark") | ast.Name(id="mark"))):
            return True
    return False


def _arguments(mark: ast.Call) -> Iterator[str | None]:
    for argument in mark.args:
        match argument:
            case ast.Constant(value=str(rule)):
                yield rule
            case _:
                yield None
    if mark.keywords or not mark.args:
        yield None


def _can_fail(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return not isinstance(test, (ast.Constant, ast.Tuple))
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name == "raises" or name.startswith("assert_")
    return False
