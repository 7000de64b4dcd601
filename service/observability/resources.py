"""The resource accounts as metric families: labels provider, account and unit only, and a bounded number of them.

What is not stated has no sample; that accounts are left out, or that nothing is known of any, is a metric of its own.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from index_mappings.operations import Operations, ResourceAccount
from service.operations.state_document import moment, remaining

MOST_ACCOUNTS: Final = 1_000

_LABELS: Final = ("provider", "account", "unit")


def resource_families(operations: Operations | None) -> list[Metric]:
    """The families.

    Args:
        operations: what the live generation tells; None when it tells nothing of accounts.
    """
    known = () if operations is None else operations.accounts
    shown = known[:MOST_ACCOUNTS]
    return [
        _one("accounts_known", "Whether the live generation tells of accounts at all.", operations is not None),
        _one("accounts", "Accounts that the catalogue states.", None if operations is None else len(known)),
        _one("accounts_left_out", f"Accounts beyond {MOST_ACCOUNTS:,}.", len(known) - len(shown)),
        _each("used", "Units that are used up.", shown, lambda account: account.used),
        _each("limit", "Units that there are.", shown, lambda account: account.limit),
        _each("remaining", "limit - used; below 0 when more is used than there is.", shown, remaining),
        _each(
            "reset_timestamp_seconds", "When the count begins anew.", shown, lambda account: _seconds(account.resets_at)
        ),
        _each(
            "observed_timestamp_seconds",
            "When this was seen.",
            shown,
            lambda account: _seconds(account.observed_at),
        ),
        _statuses(shown),
    ]


def _one(name: str, about: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"shopdir_resource_{name}", about, value=value)


def _each(
    name: str, about: str, accounts: Iterable[ResourceAccount], value: Callable[[ResourceAccount], float | None]
) -> Metric:
    family = GaugeMetricFamily(f"shopdir_resource_{name}", about, labels=_LABELS)
    for account in accounts:
        if (found := value(account)) is not None:
            family.add_metric(_labels(account), found)
    return family


def _statuses(accounts: Iterable[ResourceAccount]) -> Metric:
    family = InfoMetricFamily(
        "shopdir_resource_status", "The account's status, in the catalogue's words.", labels=_LABELS
    )
    for account in accounts:
        if account.status is not None:
            family.add_metric(_labels(account), {"status": account.status})
    return family


def _labels(account: ResourceAccount) -> tuple[str, str, str]:
    return account.provider, account.account, account.unit or ""


def _seconds(text: str | None) -> float | None:
    found = moment(text)
    return None if found is None else found.timestamp()
