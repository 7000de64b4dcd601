"""The report of a run as tables or as JSON. What the service sent is shown as plain text, credentials are hidden."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shop_directory.conformance.rule import Rule, RuleOutcome, Verdict
from shop_directory.conformance.run import Run

_LABELS: Final = {
    RuleOutcome.PASSED: Text("passed", "green"),
    RuleOutcome.FAILED: Text("FAILED", "bold red"),
    RuleOutcome.NOT_SEEN: Text("not seen", "yellow"),
    RuleOutcome.NOT_ASKED: Text("not asked", "dim"),
}
_HIDDEN: Final = "[hidden]"
Redact = Callable[[str], str]


def run_document(run: Run, secrets: Iterable[str | None]) -> dict[str, Any]:
    """The JSON object of a run: one record for each rule, and the counts."""
    redact = _redactor(secrets)
    return {
        "base": run.base,
        "requests": run.requests,
        "waited_seconds": round(run.waited, 1),
        "counts": {outcome.value: len(run.of(outcome)) for outcome in RuleOutcome},
        "rules": [_record(verdict, redact) for verdict in run.verdicts],
    }


def rules_document(rules: Iterable[Rule], unseen: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object of a list of rules."""
    return {
        "rules": [{"id": rule.id, "statement": rule.statement, "needs": sorted(rule.needs)} for rule in rules],
        "unseen": [{"id": rule_id, "reason": reason} for rule_id, reason in unseen.items()],
    }


def print_run(run: Run, secrets: Iterable[str | None], console: Console) -> None:
    """Print the table of a run, the finding of each failure, and a summary."""
    redact = _redactor(secrets)
    table = Table("rule", "outcome", "statement", title=Text(f"Shop Directory at {run.base}"), title_justify="left")
    for verdict in run.verdicts:
        needed = "needed: " if verdict.outcome is RuleOutcome.NOT_SEEN else ""
        reason = f"\n({needed}{redact(verdict.reason)})" if verdict.reason else ""
        table.add_row(verdict.rule.id, _LABELS[verdict.outcome], Text.assemble(verdict.rule.statement, (reason, "dim")))
    console.print(table)
    for verdict in run.of(RuleOutcome.FAILED):
        console.print(Text(f"\n{verdict.rule.id}: {verdict.rule.statement}", "bold red"))
        lines = Table.grid(padding=(0, 2))
        for name, text in asdict(verdict.finding).items() if verdict.finding else ():
            lines.add_row(f"  {name}", Text(redact(text)))
        console.print(lines)
    counts = ", ".join(f"{len(run.of(outcome))} {_LABELS[outcome].plain}" for outcome in RuleOutcome)
    waited = f" Waited {run.waited:.0f} s for the quota; a token raises it." if run.waited else ""
    console.print(Text(f"\n{len(run.verdicts)} rules: {counts}. {run.requests} requests.{waited}"))


def print_rules(rules: Iterable[Rule], unseen: Mapping[str, str], console: Console) -> None:
    """Print a list of rules as a table."""
    table = Table("rule", "needs", "statement")
    for rule in rules:
        table.add_row(rule.id, " ".join(sorted(rule.needs)), Text(rule.statement))
    for rule_id, reason in unseen.items():
        table.add_row(rule_id, "", Text(f"Not checked: {reason}", "dim"))
    console.print(table)


def _record(verdict: Verdict, redact: Redact) -> dict[str, Any]:
    finding = verdict.finding
    return {
        "id": verdict.rule.id,
        "statement": verdict.rule.statement,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason and redact(verdict.reason),
        "finding": finding and {name: redact(text) for name, text in asdict(finding).items()},
    }


def _redactor(secrets: Iterable[str | None]) -> Redact:
    """A function that replaces credentials in text, wherever a service may have put them."""
    present = [re.escape(secret) for secret in secrets if secret]
    return partial(re.compile("|".join(present)).sub, _HIDDEN) if present else str
