"""A run is polite: few requests at a time, none twice, and it waits where the service asks it to."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from shop_directory.conformance.client import Bounds, Client
from shop_directory.conformance.rule import Outcome
from shop_directory.conformance.rules import RULES
from shop_directory.conformance.run import RunOptions
from tests.people.check.breaking import Answered, Changed, answering
from tests.people.check.stage import Stage

READING: Final = [rule for rule in RULES if not rule.alone and rule.id.startswith("I")]


def test_every_nth_refusal_is_waited_for_and_breaks_no_rule(stage: Stage) -> None:
    counted = 0

    def after(answered: Answered) -> None:
        nonlocal counted
        counted += 1
        if counted in {20, 40}:
            answered.be(429, {"status": 429, "code": "quota_exceeded"}, b"application/problem+json")
            answered.set_header(b"retry-after", b"0")

    found = stage.check(READING, lambda app: Changed(app, after=after), RunOptions(stage.options.base))
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(Outcome.FAILED)] == []
    # "0" is a short wait all the same, so that a service that means no good is not asked without a pause.
    assert 0.1 <= found.waited <= 0.3
    assert counted == found.requests


def test_a_wait_that_several_answers_ask_for_is_one_wait_and_reported_once() -> None:
    reported: list[float] = []
    spent = Client("http://a.example", on_wait=reported.append)
    spent.wait_until(10.0, 11.0)
    spent.wait_until(10.25, 11.25)
    spent.wait_until(10.5, 11.0)
    assert (reported, spent.waited, spent.not_before) == ([1.0], 1.25, 11.25)
    spent.wait_until(12.0, 14.0)
    assert (reported, spent.waited, spent.not_before) == ([1.0, 2.0], 3.25, 14.0)


def test_no_more_than_four_requests_are_in_flight_at_once(stage: Stage) -> None:
    in_flight, most = 0, 0

    def crowded(app: ASGIApp) -> ASGIApp:
        async def counting(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0.002)
            await app(scope, receive, send)
            in_flight -= 1

        return counting

    stage.check(READING, crowded)
    assert most == 4


def test_equal_questions_of_different_rules_are_asked_once(stage: Stage) -> None:
    asked: Counter[tuple[str, bytes]] = Counter()

    def after(answered: Answered) -> None:
        if answered.asked.path.startswith("/tool/"):
            asked[answered.asked.path, answered.asked.body] += 1

    rules = [
        rule for rule in READING if rule.id in {"I9", "I11", "I16", "I17", "I18", "I19", "I20", "I21", "I39", "I47"}
    ]
    stage.check(rules, lambda app: Changed(app, after=after), RunOptions(stage.options.base))
    assert asked
    assert set(asked.values()) == {1}


def test_a_run_sends_no_more_requests_than_it_may_and_says_what_it_left(stage: Stage) -> None:
    options = replace(stage.options, bounds=Bounds(requests=60))
    found = stage.check(RULES, options=options)
    left = [verdict for verdict in found.of(Outcome.NOT_ASKED) if verdict.reason == "the run has sent its 60 requests"]
    assert (found.requests, found.unfinished, found.of(Outcome.FAILED)) == (60, True, ())
    assert len(left) > len(RULES) / 2


def test_what_differs_once_only_because_the_catalogue_changed_is_asked_again(stage: Stage) -> None:
    seen = 0

    def once(answered: Answered) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            answered.document = {**answered.document, "total_count": 10_000}

    rules = [rule for rule in RULES if rule.id == "I21"]
    found = stage.check(rules, answering("/tool/find_shop", once))
    assert [verdict.outcome for verdict in found.verdicts] == [Outcome.PASSED]


def test_a_list_of_all_coupons_that_is_not_handed_out_is_not_seen_and_single_shops_are_judged(stage: Stage) -> None:
    def too_many(answered: Answered) -> None:
        if not answered.asked.arguments:
            answered.be(400, {"status": 400, "code": "too_many_coupons"}, b"application/problem+json")

    rules = [rule for rule in RULES if rule.id in {"I16", "I18", "I20", "I39", "I56"}]
    found = stage.check(rules, answering("/tool/list_coupons", too_many))
    assert [(verdict.rule.id, verdict.outcome) for verdict in found.verdicts] == [
        ("I16", Outcome.PASSED),
        ("I18", Outcome.PASSED),
        ("I20", Outcome.PASSED),
        ("I39", Outcome.PASSED),
        ("I56", Outcome.NOT_SEEN),
    ]
