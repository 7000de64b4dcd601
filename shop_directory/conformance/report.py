"""A run, for people or for programs. What came from the service is text only, and credentials are not shown."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from shop_directory.conformance.rule import Outcome, Rule, Verdict
from shop_directory.conformance.run import Run

_WORDS: Final = {
    Outcome.PASSED: Text("passed", "green"),
    Outcome.FAILED: Text("FAILED", "bold red"),
    Outcome.NOT_SEEN: Text("not seen", "yellow"),
    Outcome.NOT_ASKED: Text("not asked", "dim"),
}
_HIDDEN: Final = "[hidden]"


def run_document(run: Run, secrets: Iterable[str | None]) -> dict[str, Any]:
    """The JSON object of a run: a record a rule, and the sums."""
    hide = _Hide(secrets)
    return {
        "base": run.base,
        "requests": run.requests,
        "waited_seconds": round(run.waited, 1),
        "counts": {outcome.value: len(run.of(outcome)) for outcome in Outcome},
        "rules": [_record(verdict, hide) for verdict in run.verdicts],
    }


def rules_document(rules: Iterable[Rule], unseen: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object of the rules themselves."""
    return {
        "rules": [{"id": rule.id, "statement": rule.statement, "needs": sorted(rule.needs)} for rule in rules],
        "unseen": [{"id": rule_id, "reason": reason} for rule_id, reason in unseen.items()],
    }


def print_run(run: Run, secrets: Iterable[str | None], console: Console) -> None:
    """The table of a run, what is behind each failure, and one line that sums it up."""
    hide = _Hide(secrets)
    table = Table(
        "rule", "outcome", "what it demands", title=Text(f"Shop Directory at {run.base}"), title_justify="left"
    )
    for verdict in run.verdicts:
        reason = (
            f"\n({'needed: ' * (verdict.outcome is Outcome.NOT_SEEN)}{hide(verdict.reason)})" if verdict.reason else ""
        )
        table.add_row(verdict.rule.id, _WORDS[verdict.outcome], Text.assemble(verdict.rule.statement, (reason, "dim")))
    console.print(table)
    for verdict in run.of(Outcome.FAILED):
        console.print(_failure(verdict, hide))
    console.print(Text(_sum(run)))


def print_rules(rules: Iterable[Rule], unseen: Mapping[str, str], console: Console) -> None:
    """The table of the rules themselves."""
    table = Table("rule", "needs", "what it demands")
    for rule in rules:
        table.add_row(rule.id, " ".join(sorted(rule.needs)), Text(rule.statement))
    for rule_id, reason in unseen.items():
        table.add_row(rule_id, "", Text(f"Not checked: {reason}", "dim"))
    console.print(table)


def _failure(verdict: Verdict, hide: "_Hide") -> RenderableType:
    lines = Table.grid(padding=(0, 2))
    if (finding := verdict.finding) is not None:
        for name, told in (("asked", finding.asked), ("expected", finding.expected), ("came", finding.came)):
            lines.add_row(f"  {name}", Text(hide(told)))
    return Group(Text(f"\n{verdict.rule.id}: {verdict.rule.statement}", "bold red"), lines)


def _sum(run: Run) -> str:
    counts = ", ".join(f"{len(run.of(outcome))} {_WORDS[outcome].plain}" for outcome in Outcome)
    waited = f" The quota made it wait {run.waited:.0f} s; a token raises it." if run.waited else ""
    return f"\n{len(run.verdicts)} rules: {counts}. {run.requests} requests.{waited}"


def _record(verdict: Verdict, hide: "_Hide") -> dict[str, Any]:
    finding = verdict.finding
    return {
        "id": verdict.rule.id,
        "statement": verdict.rule.statement,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason and hide(verdict.reason),
        "finding": finding
        and {"asked": hide(finding.asked), "expected": hide(finding.expected), "came": hide(finding.came)},
    }


class _Hide:
    """Takes credentials out of text, wherever a service may have put them."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text
