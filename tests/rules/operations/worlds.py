"""The four-shop world with accounts of the operator, served with and without an operations key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from service.app import create_app
from service.settings.service import Settings
from tests.support.served import served
from tests.support.worlds import SHOPS, embedded_world

KEY: Final = "a-key-of-the-operator"
COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
BUILT_AT: Final = "2026-11-21T09:30:00Z"
ACCOUNTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "provider": "crawler",
        "account": "main",
        "unit": "requests",
        "used": 700.1,
        "limit": 1000,
        "resets_at": "2031-05-01T00:00:00Z",
        "status": "active",
        "observed_at": "2031-04-30T12:00:00Z",
    },
    {"provider": "crawler", "account": "over", "unit": "requests", "used": 12, "limit": 10},
    {"provider": "mail", "account": "bare"},
)


def world(folder: Path, accounts: tuple[dict[str, Any], ...] = ACCOUNTS) -> Path:
    return embedded_world(folder, SHOPS, resource_accounts=accounts)


def settings_of(index: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    return Settings(
        **{
            "data_dir": index,
            "reports_file": index.parent / "reports.sqlite",
            "commit": COMMIT,
            "built_at": BUILT_AT,
            "request_timeout": 10.0,
            **given,
        }
    )


@contextmanager
def serving(index: Path, **given: Any) -> Iterator[str]:  # noqa: ANN401 - any setting
    """Serve a world; yields its base URL."""
    with served(create_app(settings_of(index, **given))) as base:
        yield base
