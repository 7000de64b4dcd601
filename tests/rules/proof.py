"""Whether the tests prove the rules: findings in words, empty when all is well.

A rule is proved by a test that names it and can fail.
"""

from collections.abc import Iterator, Sequence

from tests.rules.manifest import Rule
from tests.rules.marks import Marks


def unknown_rules(rules: Sequence[Rule], marks: Marks) -> str:
    """The marks that name no rule of the manifest, or that can't be read, a line each; "" when there is none."""
    known = {rule.id for rule in rules}
    return "\n".join(
        f"{mention.location}: "
        + ("a rule id must be written out as a string" if mention.rule is None else f"there is no rule {mention.rule}")
        for mention in marks.mentions
        if mention.rule not in known
    )


def unproved_rules(rules: Sequence[Rule], marks: Marks, scope: int) -> str:
    """A heading and a line for each rule up to the scope that no test proves; "" when there is none."""
    proved = frozenset[str]().union(*(test.rules for test in marks.tests if test.asserts))
    due = [rule for rule in rules if rule.scope <= scope]
    missing = [rule for rule in due if rule.id not in proved]
    if not missing:
        return ""
    lines = "\n".join(_line(rule, marks) for rule in missing)
    return f"{len(missing)} of {len(due)} rules up to scope {scope} have no test:\n{lines}"


def disorder(rules: Sequence[Rule], letters: str) -> Iterator[str]:
    """What is wrong with the sequence of ids, a finding each.

    Args:
        rules: in the manifest's order; their ids are well formed.
        letters: the first letters of ids, in the order that they must have.
    """
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


def _line(rule: Rule, marks: Marks) -> str:
    idle = [test.location for test in marks.tests if rule.id in test.rules]
    remark = f" [named without an assertion by {', '.join(idle)}]" if idle else ""
    return f"  {rule.id:<18} {rule.statement}{remark}"
