"""One run: find the subjects, check every rule, return a verdict for each. No response ends a run early."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import httpx2

from shop_directory.conformance.bounds import USUAL, Bounds
from shop_directory.conformance.exchange import (
    Client,
    Finding,
    NotAskedError,
    NothingToSeeError,
    Request,
    RuleBrokenError,
)
from shop_directory.conformance.rule import Need, Rule, RuleOutcome, Verdict
from shop_directory.conformance.service_under_test import ServiceUnderTest, Subjects, explore


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run; `under_review` has ids or domains, and `write` allows reports to be sent."""

    base: str
    token: str | None = None
    ops_key: str | None = None
    under_review: tuple[str, ...] = ()
    write: bool = False
    bounds: Bounds = USUAL

    @property
    def given(self) -> frozenset[Need]:
        """The needs of rules that these options meet."""
        provided = (self.token, self.ops_key, self.under_review, self.write)
        return frozenset(need for need, value in zip(Need, provided, strict=True) if value)


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run: a verdict for each rule in order, the requests sent, the seconds waited for the quota."""

    base: str
    verdicts: tuple[Verdict, ...]
    requests: int
    waited: float

    def of(self, outcome: RuleOutcome) -> tuple[Verdict, ...]:
        """The verdicts of this outcome."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is outcome)

    @property
    def unfinished(self) -> bool:
        """Whether a rule was not checked because the run had used up its bounds."""
        return any(verdict.out_of_budget for verdict in self.verdicts)


class NoServiceError(Exception):
    """There is no Shop Directory at the address; the text has the reason."""


async def run(
    options: RunOptions,
    rules: Sequence[Rule],
    transport: httpx2.AsyncBaseTransport | None = None,
    on_wait: Callable[[float], None] = lambda _: None,
) -> Run:
    """Check the rules of a service; raises NoServiceError where there is no Shop Directory at the address.

    A transport replaces the network, for an application in the same process. `on_wait` is called for each wait for the
    quota, with its length in seconds.
    """
    async with Client(options.base.rstrip("/"), options.bounds, transport, on_wait) as client:
        service = ServiceUnderTest(client, Subjects(), options.token, options.ops_key, options.under_review)
        service = replace(service, subjects=await _explore(service))
        verdicts = await _check_all(service, rules, options.given)
        return Run(options.base, verdicts, client.requests, client.waited)


async def _explore(service: ServiceUnderTest) -> Subjects:
    try:
        await service.send(Request("GET", "/health"))
        subjects = await explore(service)
    except RuleBrokenError as error:
        raise NoServiceError(f"Nothing answers at {service.client.base}: {error.finding.actual}.") from None
    except NotAskedError as error:
        raise NoServiceError(f"The service cannot be checked: {error}.") from None
    if not subjects.answered:
        raise NoServiceError(f"Something answers at {service.client.base}, but it is not a Shop Directory.")
    return subjects


async def _check_all(service: ServiceUnderTest, rules: Sequence[Rule], given: frozenset[Need]) -> tuple[Verdict, ...]:
    """The verdicts in the order of the rules; the rules that run alone are checked last, one after the other."""
    together = [rule for rule in rules if not rule.alone]
    verdicts = await asyncio.gather(*(_check(service, rule, given) for rule in together))
    found = {verdict.rule.id: verdict for verdict in verdicts}
    for rule in rules:
        if rule.alone:
            found[rule.id] = await _check(service, rule, given)
    return tuple(found[rule.id] for rule in rules)


async def _check(service: ServiceUnderTest, rule: Rule, given: frozenset[Need]) -> Verdict:
    if missing := sorted(rule.needs - given):
        return Verdict(rule, RuleOutcome.NOT_ASKED, reason=f"needs {' and '.join(missing)}")
    verdict = await _verdict(service, rule)
    if verdict.outcome is not RuleOutcome.FAILED or rule.alone:
        return verdict
    # A generation may have been published between two responses: a broken rule is broken again with fresh responses.
    try:
        # The rule compares new responses, not those that exploring received some time before.
        service = replace(service.fresh, subjects=await explore(service.fresh))
    except NotAskedError:
        return verdict
    again = await _verdict(service, rule)
    return verdict if again.out_of_budget else again


async def _verdict(service: ServiceUnderTest, rule: Rule) -> Verdict:
    try:
        for step in rule.steps:
            await step(service)
    except RuleBrokenError as error:
        return Verdict(rule, RuleOutcome.FAILED, finding=error.finding)
    except NothingToSeeError as error:
        return Verdict(rule, RuleOutcome.NOT_SEEN, reason=str(error))
    except NotAskedError as error:
        return Verdict(rule, RuleOutcome.NOT_ASKED, reason=str(error), out_of_budget=True)
    except Exception as error:  # noqa: BLE001 - no response, however malformed, may end the run
        finding = Finding(
            "several requests", "responses that can be read", f"one that cannot be ({type(error).__name__})"
        )
        return Verdict(rule, RuleOutcome.FAILED, finding=finding)
    return Verdict(rule, RuleOutcome.PASSED)
