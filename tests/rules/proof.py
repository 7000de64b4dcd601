"""The rules of the manifest, and whether the tests prove them: a rule is proved by a test that names it and can fail.

A rule is written once, in manifest.toml; tests name it by its id. Their source is read and nothing is imported or run,
so the answer is the same when only some tests are selected. Marks are seen on functions, in a module's `pytestmark`,
and in the `marks=` of a parameter. Findings are words, empty when all is well.
"""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as validated_dataclass

MANIFEST: Final = Path(__file__).with_name("manifest.toml")


@validated_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Rule:
    """One obligation: "M6" of a page, or one more of it such as "M6.ignored"; the scope is 1 to 6."""

    id: str
    scope: int
    statement: str


@dataclass(frozen=True, slots=True)
class MarkedTest:
    """A test by "file:line name", the ids of the rules that it claims, and whether it can fail by design.

    It can by an assertion, `pytest.raises` or a call of `assert_...`. `stage_marks` are those of "fast" and "slow" that
    it has itself, or all of its cases.
    """

    location: str
    rules: frozenset[str]
    asserts: bool
    stage_marks: frozenset[str] = frozenset()

    @property
    def file(self) -> str:
        """The file of its location."""
        return self.location.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """The tests of files, and of each mark its "file:line" and its id; None for an id that is not written out."""

    tests: tuple[MarkedTest, ...]
    mentions: tuple[tuple[str, str | None], ...]


def read_manifest() -> tuple[Rule, ...]:
    """The rules in their order; ValidationError if one has other fields or types than those of `Rule`."""
    return TypeAdapter(tuple[Rule, ...]).validate_python(tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["rules"])


def marks_of_source(source: str, file: str) -> Marks:
    """The marks of one file; of files that pytest does not run they prove nothing, but must name rules that exist."""
    tree = ast.parse(source, filename=file)
    mentions = [(f"{file}:{mark.lineno}", rule) for mark in _marks(tree) for rule in _arguments(mark)]
    everywhere = {rule for node in tree.body if _is_pytestmark(node) for rule in _rules(node)}
    tests = [
        MarkedTest(
            f"{file}:{node.lineno} {node.name}",
            frozenset(everywhere.union(*map(_rules, node.decorator_list))),
            any(map(_can_fail, ast.walk(node))),
            frozenset(filter(None, map(_stage_mark, node.decorator_list))),
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return Marks(tuple(tests) if Path(file).name.startswith("test_") else (), tuple(mentions))


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


def unknown_rules(rules: Sequence[Rule], marks: Marks) -> str:
    """The marks that name no rule of the manifest, or that can't be read, a line each."""
    known = {rule.id for rule in rules}
    return "\n".join(
        f"{location}: " + ("a rule id must be written out as a string" if rule is None else f"there is no rule {rule}")
        for location, rule in marks.mentions
        if rule not in known
    )


def unproved_rules(rules: Sequence[Rule], marks: Marks) -> str:
    """A line for each rule that no test proves, with the tests that name it and assert nothing."""
    proved = frozenset[str]().union(*(test.rules for test in marks.tests if test.asserts))
    missing = [(rule, [test.location for test in marks.tests if rule.id in test.rules]) for rule in rules]
    return "\n".join(
        f"{rule.id:<18} {rule.statement}" + (f" [named without an assertion by {', '.join(idle)}]" if idle else "")
        for rule, idle in missing
        if rule.id not in proved
    )


def disorder(rules: Sequence[Rule], letters: str) -> Iterator[str]:
    """What is wrong with the sequence of well-formed ids, a finding each; `letters` are their first ones, in order."""
    expected = 1
    letter, whole = letters[0], ""
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            yield f"{rule.id} is there twice"
            continue
        seen.add(rule.id)
        parent, _, part = rule.id.partition(".")
        if part:
            if parent != whole:
                yield f"{rule.id} must follow {parent}"
            continue
        if parent[0] != letter and letters.find(parent[0]) == letters.find(letter) + 1:
            letter, expected = parent[0], 1
        if parent != f"{letter}{expected}":
            yield f"{parent} stands where {letter}{expected} is due"
        whole, expected = parent, expected + 1


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(getattr(target, "id", None) == "pytestmark" for target in node.targets)


def _stage_mark(node: ast.expr) -> str | None:
    match node:
        case ast.Attribute(attr="fast" | "slow" as name, value=ast.Attribute(attr="mark")):
            return name
    return None


def _marks(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="rule", value=ast.Attribute(attr="mark"))):
                yield node


def _rules(tree: ast.AST) -> frozenset[str]:
    return frozenset(rule for mark in _marks(tree) for rule in _arguments(mark) if rule is not None)


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
