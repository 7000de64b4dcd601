"""The resource accounts as metric families, labelled by provider, account and unit; the number of accounts is bounded.

A value that the catalogue does not state has no sample. Separate metrics show how many accounts are left out, and
whether any information on accounts exists.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from index_mappings.operations import Operations, ResourceAccount
from service.operations.state_document import parse_timestamp, remaining

MAX_ACCOUNTS: Final = 1_000

_LABELS: Final = ("provider", "account", "unit")


def resource_families(operations: Operations | None) -> list[Metric]:
    """The metric families of the accounts; None where the live generation has no operations document."""
    accounts = () if operations is None else operations.accounts
    shown = accounts[:MAX_ACCOUNTS]
    return [
        _gauge("accounts_known", "Whether the live generation has information on accounts.", operations is not None),
        _gauge("accounts", "Accounts that the catalogue states.", None if operations is None else len(accounts)),
        _gauge("accounts_left_out", f"Accounts beyond {MAX_ACCOUNTS:,}.", len(accounts) - len(shown)),
        _account_gauge("used", "Units used.", shown, lambda account: account.used),
        _account_gauge("limit", "Units available in total.", shown, lambda account: account.limit),
        _account_gauge("remaining", "limit - used; below 0 when more is used than there is.", shown, remaining),
        _account_gauge(
            "reset_timestamp_seconds",
            "When the count restarts.",
            shown,
            lambda account: _unix_seconds(account.resets_at),
        ),
        _account_gauge(
            "observed_timestamp_seconds",
            "When this was observed.",
            shown,
            lambda account: _unix_seconds(account.observed_at),
        ),
        _statuses(shown),
    ]


def _gauge(name: str, help_text: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"shopdir_resource_{name}", help_text, value=value)


def _account_gauge(
    name: str, help_text: str, accounts: Iterable[ResourceAccount], value: Callable[[ResourceAccount], float | None]
) -> Metric:
    family = GaugeMetricFamily(f"shopdir_resource_{name}", help_text, labels=_LABELS)
    for account in accounts:
        if (number := value(account)) is not None:
            family.add_metric(_labels(account), number)
    return family


def _statuses(accounts: Iterable[ResourceAccount]) -> Metric:
    family = InfoMetricFamily(
        "shopdir_resource_status", "The account's status, as the catalogue states it.", labels=_LABELS
    )
    for account in accounts:
        if account.status is not None:
            family.add_metric(_labels(account), {"status": account.status})
    return family


def _labels(account: ResourceAccount) -> tuple[str, str, str]:
    return account.provider, account.account, account.unit or ""


def _unix_seconds(text: str | None) -> float | None:
    time = parse_timestamp(text)
    return None if time is None else time.timestamp()
