"""One run: look around, ask every rule, and give one verdict for each. Nothing the service sends ends a run early."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import httpx2

from shop_directory.conformance.bounds import USUAL, Bounds
from shop_directory.conformance.client import Client, Spent
from shop_directory.conformance.discovery import explore
from shop_directory.conformance.exchange import Ask
from shop_directory.conformance.findings import Finding, NotAskedError, NothingToSeeError, RuleBrokenError
from shop_directory.conformance.rule import Need, Outcome, Rule, Verdict
from shop_directory.conformance.service_under_test import Visit
from shop_directory.conformance.subjects import Seen


@dataclass(frozen=True, slots=True)
class Wish:
    """What a run is asked to do.

    Attributes:
        base: the address of the service.
        token: an API token, if there is one.
        ops_key: the operations key, if there is one.
        under_review: ids or domains of shops that are known to be under review.
        write: whether reports may be sent.
        bounds: of the run.
    """

    base: str
    token: str | None = None
    ops_key: str | None = None
    under_review: tuple[str, ...] = ()
    write: bool = False
    bounds: Bounds = USUAL

    @property
    def given(self) -> frozenset[Need]:
        """The needs of rules that it meets."""
        there = {
            Need.TOKEN: bool(self.token),
            Need.OPS_KEY: bool(self.ops_key),
            Need.UNDER_REVIEW: bool(self.under_review),
            Need.WRITE: self.write,
        }
        return frozenset(need for need, is_there in there.items() if is_there)


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of a run.

    Attributes:
        base: the address.
        verdicts: one a rule, in the order of the rules.
        requests: that were sent.
        waited: seconds that the service's quotas made it wait.
    """

    base: str
    verdicts: tuple[Verdict, ...]
    requests: int
    waited: float

    def of(self, outcome: Outcome) -> tuple[Verdict, ...]:
        """The verdicts of this outcome."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is outcome)

    @property
    def unfinished(self) -> bool:
        """Whether a rule went unasked because the run had spent what it may take."""
        return any(verdict.spent for verdict in self.verdicts)


class NobodyThereError(Exception):
    """Nothing answers at the address, or not a Shop Directory; the text says which."""


async def run(
    wish: Wish,
    rules: Sequence[Rule],
    transport: httpx2.AsyncBaseTransport | None = None,
    told: Callable[[float], None] = lambda _: None,
) -> Run:
    """Ask the rules of a service.

    Args:
        wish: what to ask, and where.
        rules: in the order of the verdicts.
        transport: another way than the network, for an application in the same process.
        told: is told of each wait for the quota, in seconds.

    Raises:
        NobodyThereError: nothing that looks like a Shop Directory is at the address.
    """
    async with Client(wish.base.rstrip("/"), wish.bounds, transport, Spent(told=told)) as client:
        visit = Visit(client, Seen(), wish.token, wish.ops_key, wish.under_review)
        visit = replace(visit, seen=await _explored(visit))
        verdicts = await _judge_all(visit, rules, wish.given)
        return Run(wish.base, verdicts, client.spent.requests, client.spent.waited)


async def _explored(visit: Visit) -> Seen:
    try:
        await visit.client.ask(Ask("GET", "/health"))
        seen = await explore(visit)
    except RuleBrokenError as error:
        raise NobodyThereError(f"Nothing answers at {visit.client.base}: {error.finding.came}.") from None
    except NotAskedError as error:
        raise NobodyThereError(f"The address can't be looked at: {error}.") from None
    if not seen.answered:
        raise NobodyThereError(f"Something answers at {visit.client.base}, but it is no Shop Directory.")
    return seen


async def _judge_all(visit: Visit, rules: Sequence[Rule], given: frozenset[Need]) -> tuple[Verdict, ...]:
    """The verdicts in the order of the rules; those that want to be alone are asked last, one after the other."""
    together = [rule for rule in rules if not rule.alone]
    verdicts = await asyncio.gather(*(_judge(visit, rule, given) for rule in together))
    found = {verdict.rule.id: verdict for verdict in verdicts}
    for rule in rules:
        if rule.alone:
            found[rule.id] = await _judge(visit, rule, given)
    return tuple(found[rule.id] for rule in rules)


async def _judge(visit: Visit, rule: Rule, given: frozenset[Need]) -> Verdict:
    if missing := sorted(rule.needs - given):
        return Verdict(rule, Outcome.NOT_ASKED, reason=f"needs {' and '.join(missing)}")
    verdict = await _asked(visit, rule)
    if verdict.outcome is not Outcome.FAILED or rule.alone:
        return verdict
    # A publication between two answers is no fault: what is broken is broken again, with nothing remembered.
    visit = replace(visit, client=visit.client.forgetful())
    try:
        visit = replace(visit, seen=await explore(visit))
    except NotAskedError:
        return verdict
    again = await _asked(visit, rule)
    return verdict if again.spent else again


async def _asked(visit: Visit, rule: Rule) -> Verdict:
    try:
        await rule.check(visit)
    except RuleBrokenError as error:
        return Verdict(rule, Outcome.FAILED, finding=error.finding)
    except NothingToSeeError as error:
        return Verdict(rule, Outcome.NOT_SEEN, reason=str(error))
    except NotAskedError as error:
        return Verdict(rule, Outcome.NOT_ASKED, reason=str(error), spent=True)
    except Exception as error:  # noqa: BLE001 - no answer, however strange, may end the run
        finding = Finding("several requests", "answers that can be read", f"one that can't be ({type(error).__name__})")
        return Verdict(rule, Outcome.FAILED, finding=finding)
    return Verdict(rule, Outcome.PASSED)
