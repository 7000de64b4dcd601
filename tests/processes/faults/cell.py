"""One cell of the matrix: its questions by every way, and what is wrong with the answers before, during and after."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

from service.tools.registry import REGISTRY
from service.tools.report_code import RECEIPT
from service.tools.report_issue import REASONS
from service.tools.tool import TokenRule
from tests.processes.faults.breaking import PREFIX, SHOPS, ReportKey
from tests.support.callers import Issued
from tests.support.served import Reply, get, post
from tests.support.wire import Era, call

_MARKS: Final = ("content-type", "etag", "x-generation")
_PROBLEM: Final = {"type", "title", "status", "detail", "code"}
# What no answer may say of what is behind it (E5).
_INSIDE: Final = re.compile(rf"127\.0\.0\.1|{PREFIX}|redis|opensearch|lucene|Error|Exception|Traceback|_search|\.py")
_ISSUES: Final = [(shop, reason) for reason in REASONS["shop"] for shop in range(SHOPS)]
_NUMBERS: Final = count()
_NEEDS_TOKEN: Final = frozenset(tool.name for tool in REGISTRY if tool.token is TokenRule.REQUIRED)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the matrix, on a transport: rest, suggest, probe, or mcp of an era.

    `tool` may be a path; the arguments of a report are made for each report.
    """

    name: str
    transport: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    era: Era = Era.STATELESS

    @property
    def is_report(self) -> bool:
        return self.tool.startswith("report_")

    @property
    def is_of_a_new_token(self) -> bool:
        return self.name.endswith("/new")

    @property
    def kind(self) -> str:
        """Its row of the matrix: a report, a probe, a read, or a read that must know a token which is new."""
        if self.is_report:
            return "report"
        if self.transport == "probe":
            return self.tool.removeprefix("/")
        return "new_token" if self.is_of_a_new_token and self.tool in _NEEDS_TOKEN else "read"


def _rest(name: str, tool: str, **arguments: Any) -> Question:  # noqa: ANN401 - JSON values
    return Question(name, "rest", tool, arguments)


def _mcp(name: str, tool: str, era: Era, **arguments: Any) -> Question:  # noqa: ANN401 - JSON values
    return Question(name, "mcp", tool, arguments, era)


# "/new" is asked with a token that the service has not seen before the fault, all else with one that it has.
QUESTIONS: Final = (
    _rest("find_shop", "find_shop", query="lamp", limit=20),
    _rest("find_shop/new", "find_shop", query="lamp s7"),
    _rest("list_categories", "list_categories"),
    _rest("get_shop", "get_shop", shop_domain="s7"),
    _rest("get_shop/unknown", "get_shop", shop_domain="unknown.internal"),
    # Of more than ten, so that it is charged twice.
    _rest("get_shops", "get_shops", shop_domains=[f"s{number}" for number in range(12)]),
    _rest("list_coupons", "list_coupons", shop_domain="lamp-s3.internal"),
    _rest("list_coupons/all", "list_coupons"),
    _rest("get_shipping_policy", "get_shipping_policy", shop_domain="s5", country="DE"),
    _rest("get_shop_policies", "get_shop_policies", shop_domain="s5", country="DE"),
    _rest("get_trust", "get_trust", shop_domain="s6"),
    _rest("get_trust/unknown", "get_trust", shop_domain="unknown.internal"),
    _rest("get_trust/new", "get_trust", shop_domain="s6"),
    _rest("resolve_checkout_url", "resolve_checkout_url", offer_id="s9-o1", affiliate=True),
    _rest("monetize_offer", "monetize_offer", offer_id="s8-o0"),
    _rest("monetize_offer/new", "monetize_offer", offer_id="s8-o0"),
    _rest("resolve_conflict", "resolve_conflict", from_shop_id="s0"),
    _rest("resolve_conflict/new", "resolve_conflict", from_shop_id="s0", to_shop_id="s1"),
    _rest("report_code", "report_code"),
    _rest("report_code/new", "report_code"),
    _rest("report_issue", "report_issue"),
    _rest("report_issue/new", "report_issue"),
    Question("suggest", "suggest", "/suggest", {"q": "lamp", "limit": 10}),
    Question("suggest/typo", "suggest", "/suggest", {"q": "lmap"}),
    Question("ready", "probe", "/ready"),
    Question("health", "probe", "/health"),
    _mcp("mcp/find_shop", "find_shop", Era.STATELESS, query="lam", limit=20),
    _mcp("mcp/get_trust", "get_trust", Era.STATELESS, shop_domain="s6"),
    _mcp("mcp/report_code", "report_code", Era.STATELESS),
    _mcp("mcp-2025/find_shop", "find_shop", Era.HANDSHAKE, query="lam", limit=20),
    _mcp("mcp-2025/get_trust", "get_trust", Era.HANDSHAKE, shop_domain="s6"),
    _mcp("mcp-2025/report_code", "report_code", Era.HANDSHAKE),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; over MCP its status is that of the problem, or 200.

    `marks` are media type, tag and generation, over MCP the generation. `retry` is whether it says, as its transport
    does, when to try again.
    """

    status: int
    document: Any
    marks: tuple[str | None, ...]
    retry: bool
    seconds: float

    @property
    def what(self) -> tuple[int, Any, tuple[str | None, ...]]:
        return self.status, self.document, self.marks

    def fault_as(self, code: str) -> str:
        """What is wrong with it as the 503 of this code; nothing when it is right."""
        if self.status != 503 or self.document.get("code") != code:
            return f"not {code}"
        if set(self.document) != _PROBLEM or _INSIDE.search(json.dumps(self.document)):
            return "it says more than it may"
        return "" if self.retry else "it does not say when to try again"


class Asker:
    """Asks one service all questions, and remembers what became of each report."""

    def __init__(self, base: str, known: Issued, new: Issued) -> None:
        """Ask a service with a token that it knows, and with one that it has not seen."""
        self._base = base
        self._known = known
        self._new = new
        self.acknowledged: set[ReportKey] = set()
        self.sent: set[ReportKey] = set()

    def ask(self, questions: Sequence[Question], *, with_known: bool = False) -> dict[str, Answer]:
        tokens = [self._known if with_known or not one.is_of_a_new_token else self._new for one in questions]
        reports = [self._report(*one) for one in zip(questions, tokens, strict=True)]
        with ThreadPoolExecutor(len(questions)) as pool:
            answers = list(pool.map(self._ask, questions, tokens, reports))
        for report, one in zip(reports, answers, strict=True):
            if report is not None:
                self.sent.add(report)
                if one.status == 200:
                    self.acknowledged.add(report)
        return {question.name: one for question, one in zip(questions, answers, strict=True)}

    def _report(self, question: Question, token: Issued) -> ReportKey | None:
        if not question.is_report:
            return None
        number = next(_NUMBERS)
        if question.tool == "report_code":
            return token.id, "code", f"s{number % SHOPS}", f"CODE-{number}", "invalid"
        shop, reason = _ISSUES[number % len(_ISSUES)]
        return token.id, "shop", f"s{shop}", None, reason

    def _ask(self, question: Question, token: Issued, said: ReportKey | None) -> Answer:
        arguments = question.arguments
        if said is not None:
            _, kind, shop, code, reason = said
            more = {"code": code} if kind == "code" else {"subject_type": kind}
            arguments = {"shop_domain": shop, "reason": reason, **more}
        began = time.monotonic()
        if question.transport == "mcp":
            raw = json.dumps(arguments).encode()
            reply = call(self._base, question.era, question.tool, raw, x_api_token=token.text)
            return _over_mcp(reply, time.monotonic() - began)
        if question.transport == "rest":
            reply = post(self._base, f"/tool/{question.tool}", arguments, x_api_token=token.text)
        else:
            query = f"?{urlencode(arguments)}" if arguments else ""
            reply = get(self._base, f"{question.tool}{query}")
        marks = tuple(reply.headers.get(name) for name in _MARKS)
        retry = reply.headers.get("retry-after", "").isdecimal() and marks[0] == "application/problem+json"
        return Answer(reply.status, reply.json, marks, retry, time.monotonic() - began)


def _over_mcp(reply: Reply, seconds: float) -> Answer:
    assert reply.status == 200, reply.body
    result = reply.json["result"]
    (block,) = result["content"]
    document = json.loads(block["text"])
    marks = (result["_meta"].get("x-generation"),)
    if not result["isError"]:
        assert result["structuredContent"] == document
        return Answer(200, document, marks, retry=False, seconds=seconds)
    retry = re.search(r"\d+ second", document["detail"]) is not None and "structuredContent" not in result
    return Answer(document["status"], document, marks, retry, seconds)


# The deadline of a request, and the time to report that it passed.
_ANSWER_S: Final = 2.0
_BACK_S: Final = 10.0
_PAUSE_S: Final = 0.5
# How long the sender of a refused report waits, and how often it is sent again.
_RETRY_S: Final = 1.0
_RETRIES: Final = 3
_SAME: Final = "same"


class Cell:
    def __init__(self, asker: Asker, declared: Mapping[str, str], *, both_eras: bool) -> None:
        """Make ready; `declared` is by question what is answered while the fault lasts.

        The asker has a token that the service has not seen. `both_eras` asks MCP in its older era too.
        """
        self._asker = asker
        self._declared = declared
        self._questions = [one for one in QUESTIONS if both_eras or not one.name.startswith("mcp-2025/")]
        self._of_known = [one for one in self._questions if not one.is_of_a_new_token]
        self._before: dict[str, Answer] = {}

    def look_before(self) -> None:
        """Every question has its answer; the new token is not shown yet."""
        self._before = self._with_retries(self._questions, with_known=True)
        assert {name: one.status for name, one in self._before.items() if one.status != 200} == {
            "get_shop/unknown": 404
        }
        taken = [self._before[one.name].document for one in self._questions if one.is_report]
        assert taken == [{"status": RECEIPT}] * len(taken)
        assert all(one.document != {} for one in self._before.values())

    def wrong_while_it_begins(self) -> list[str]:
        """While the fault begins: what is neither as declared nor as before. The new token is still not shown."""
        # A report may be refused by a machine that is busy alone; what it is worth is for the next round to say.
        reads = [one for one in self._of_known if self._declared[one.name] != _SAME or not one.is_report]
        return self._wrong(self._asker.ask(reads), _SAME)

    def wrong_when_noticed(self) -> list[str]:
        return self._wrong(self._answers())

    def wrong_until_back(self, undo: Callable[[], None]) -> list[str]:
        """While the fault is undone and after: what is neither as declared nor as before, and what is not back."""
        wrong: list[str] = []
        with ThreadPoolExecutor(1) as pool:
            undone = pool.submit(undo)
            until = float("inf")
            while not wrong:
                if undone.done() and until == float("inf"):
                    undone.result()
                    until = time.monotonic() + _BACK_S
                answers = self._answers()
                wrong = self._wrong(answers, _SAME)
                changed = [name for name, one in answers.items() if one.what != self._before[name].what]
                if until < float("inf") and not changed:
                    break
                if time.monotonic() > until:
                    wrong.append(f"not back after {_BACK_S} s: {changed}")
                time.sleep(_PAUSE_S)
        # And it stays so.
        return wrong or [
            name for name, one in self._asker.ask(self._questions).items() if self._fault(name, one, _SAME)
        ]

    def wrong_reports(self, reports: Counter[ReportKey], rechecks: Counter[ReportKey]) -> list[str]:
        """Reports that were acknowledged and are not there once, or that are there more than once or by halves."""
        wrong = [f"acknowledged and lost: {said}" for said in self._asker.acknowledged if not reports[said]]
        wrong += [f"doubled: {said}" for said in self._asker.sent if reports[said] > 1]
        return wrong + [f"by halves: {said}" for said in self._asker.sent if reports[said] != rechecks[said]]

    def _answers(self) -> dict[str, Answer]:
        """The answers to all questions, asked together; with retries where the fault should make no difference."""
        sure = [one for one in self._questions if self._declared[one.name] == _SAME]
        others = [one for one in self._questions if one not in sure]
        with ThreadPoolExecutor(1) as pool:
            of_sure = pool.submit(self._with_retries, sure)
            of_others = self._asker.ask(others) if others else {}
            return of_others | of_sure.result()

    def _with_retries(self, questions: Sequence[Question], *, with_known: bool = False) -> dict[str, Answer]:
        """The answers where nothing should fail; reports are sent again as Retry-After asks.

        A report whose quota could not be counted in time is refused (Q4), which a busy machine brings about by itself.
        """
        answers = self._asker.ask(questions, with_known=with_known)
        for _ in range(_RETRIES):
            refused = [one for one in questions if one.is_report and answers[one.name].status == 503]
            if not refused:
                break
            time.sleep(_RETRY_S)
            answers |= self._asker.ask(refused, with_known=with_known)
        return answers

    def _wrong(self, answers: Mapping[str, Answer], *allowed: str) -> list[str]:
        return [
            f"{name}, after {one.seconds:.2f} s: {faults} ({one.status} {str(one.document)[:300]})"
            for name, one in answers.items()
            if (faults := self._faults(name, one, {self._declared[name], *allowed}))
        ]

    def _faults(self, name: str, answer: Answer, outcomes: set[str]) -> list[str]:
        """What is wrong in the light of each outcome that would be right; nothing when one of them is met."""
        found = [self._fault(name, answer, outcome) for outcome in sorted(outcomes)]
        faults = [] if "" in found else found
        return faults if answer.seconds < _ANSWER_S else [*faults, "too late"]

    def _fault(self, name: str, answer: Answer, outcome: str) -> str:
        """Why an answer is not this outcome; nothing when it is."""
        match outcome:
            case "same":
                return "" if answer.what == self._before[name].what else "not the answer of before"
            case "503":
                return answer.fault_as("backend_unavailable")
            case "not_ready":
                return answer.fault_as("not_ready")
            case "degraded":
                checks = {check["name"]: check["status"] for check in answer.document.get("checks", ())}
                is_degraded = (answer.status, answer.document.get("status")) == (200, "degraded")
                whole = (checks.get("search"), checks.get("reports")) == ("ok", "degraded")
                return "" if is_degraded and whole else "not degraded"
            case _:
                raise AssertionError(outcome)
