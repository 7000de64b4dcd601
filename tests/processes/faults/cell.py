"""One cell of the matrix: what is wrong with the answers before, during and after a fault.

Nothing is ever taken for right but the declared outcome and, while the fault begins and ends, the answer of before.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from service.tools.report_code import RECEIPT
from tests.processes.faults.asking import QUESTIONS, Answer, Asker, Question
from tests.processes.faults.ground import ReportKey

# The deadline of a request, and the time to report that it passed.
_ANSWER_S: Final = 2.0
_BACK_S: Final = 10.0
_PAUSE_S: Final = 0.5
# How long the sender of a refused report waits, and how often it is sent again.
_RETRY_S: Final = 1.0
_RETRIES: Final = 3
_SAME: Final = "same"


class Cell:
    """One fault, and all that is asked about it."""

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
        """While the fault lasts: what is not as declared."""
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
