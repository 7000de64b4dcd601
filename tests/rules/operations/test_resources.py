"""GET /metrics/resources: the accounts in the Prometheus text format, and never none for a failure (I77)."""

from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.generations import Operations, ResourceAccount
from service.observability.prometheus import MAX_ACCOUNTS, encode_families, resource_families
from tests.rules.operations.expositions import openmetrics_of, samples_of
from tests.rules.operations.worlds import serving, world
from tests.support.served import Reply, get

HOSTILE: Final = 'a"b\\c\nd{e}=,# HELP x 厨 \u2028'
MAIN: Final = (("account", "main"), ("provider", "crawler"), ("unit", "requests"))
OVER: Final = (("account", "over"), ("provider", "crawler"), ("unit", "requests"))


def _exposition(operations: Operations | None) -> Reply:
    body, media_type = encode_families(resource_families(operations), None)
    return Reply(200, {"content-type": media_type.decode()}, body)


def _bare(provider: str, account: str, **stated: Any) -> ResourceAccount:  # noqa: ANN401 - any field
    known = dict.fromkeys(("unit", "used", "limit", "resets_at", "status", "observed_at"))
    return ResourceAccount(provider, account, **{**known, **stated})


@pytest.mark.rule("I77", "I7")
def test_the_accounts_are_exposed_as_the_catalogue_states_them(open_base: str) -> None:
    assert samples_of(get(open_base, "/metrics/resources")) == {
        ("shopdir_resource_accounts_known", ()): 1.0,
        ("shopdir_resource_accounts", ()): 3.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
        ("shopdir_resource_used", MAIN): 700.1,
        ("shopdir_resource_used", OVER): 12.0,
        ("shopdir_resource_limit", MAIN): 1000.0,
        ("shopdir_resource_limit", OVER): 10.0,
        ("shopdir_resource_remaining", MAIN): 299.9,
        ("shopdir_resource_remaining", OVER): -2.0,
        ("shopdir_resource_reset_timestamp_seconds", MAIN): 1_935_360_000.0,
        ("shopdir_resource_observed_timestamp_seconds", MAIN): 1_935_316_800.0,
        ("shopdir_resource_status_info", (*MAIN[:2], ("status", "active"), MAIN[2])): 1.0,
    }
    openmetrics = openmetrics_of(open_base, "/metrics/resources")
    assert openmetrics["shopdir_resource_status"].type == "info"
    assert openmetrics["shopdir_resource_used"].samples[0].labels == dict(MAIN)


@pytest.mark.rule("I77", "I7")
def test_when_the_data_cannot_be_read_the_scrape_fails(tmp_path: Path) -> None:
    with serving(tmp_path / "nothing") as base:
        reply = get(base, "/metrics/resources")
    assert (reply.status, reply.json["code"], reply.headers["retry-after"]) == (503, "backend_unavailable", "1")


@pytest.mark.rule("I77", "I7")
def test_a_catalogue_without_accounts_and_a_generation_that_knows_of_none_are_two_things(tmp_path: Path) -> None:
    with serving(world(tmp_path, ())) as base:
        none = samples_of(get(base, "/metrics/resources"))
    assert none == {
        ("shopdir_resource_accounts_known", ()): 1.0,
        ("shopdir_resource_accounts", ()): 0.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
    }
    assert samples_of(_exposition(None)) == {
        ("shopdir_resource_accounts_known", ()): 0.0,
        ("shopdir_resource_accounts_left_out", ()): 0.0,
    }


@pytest.mark.rule("I77")
def test_hostile_words_of_the_catalogue_stay_within_their_labels() -> None:
    account = _bare(HOSTILE, HOSTILE, unit=HOSTILE, used=1.0, status=HOSTILE)
    samples = samples_of(_exposition(Operations((account,), None)))
    labels = (("account", HOSTILE), ("provider", HOSTILE), ("unit", HOSTILE))
    assert samples[("shopdir_resource_used", labels)] == 1.0
    assert {name for name, _ in samples} == {
        "shopdir_resource_accounts_known",
        "shopdir_resource_accounts",
        "shopdir_resource_accounts_left_out",
        "shopdir_resource_used",
        "shopdir_resource_status_info",
    }


@pytest.mark.rule("I77")
def test_more_accounts_than_are_shown_are_counted() -> None:
    accounts = tuple(_bare("p", f"{number:05}", used=number) for number in range(MAX_ACCOUNTS + 7))
    samples = samples_of(_exposition(Operations(accounts, None)))
    used = [labels for name, labels in samples if name == "shopdir_resource_used"]
    assert (len(used), samples[("shopdir_resource_accounts", ())]) == (MAX_ACCOUNTS, MAX_ACCOUNTS + 7)
    assert samples[("shopdir_resource_accounts_left_out", ())] == 7


@pytest.mark.rule("I77")
@pytest.mark.parametrize(
    ("stated", "left"),
    [
        ({"used": 0.1, "limit": 0.3}, 0.2),
        ({"used": 1.0}, None),
        ({"limit": 1.0}, None),
        ({"used": float("nan"), "limit": 1.0}, None),
        ({"used": 3.0, "limit": 1.0}, -2.0),
    ],
)
def test_what_remains_is_said_only_when_both_figures_are_there(stated: dict[str, float], left: float | None) -> None:
    samples = samples_of(_exposition(Operations((_bare("p", "a", **stated),), None)))
    assert samples.get(("shopdir_resource_remaining", (("account", "a"), ("provider", "p"), ("unit", "")))) == left
