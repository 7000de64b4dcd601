"""The four-shop world with quotas that a test uses up in a few calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from tests.support.served import served
from tests.support.worlds import embedded_world

TWO: Final = QuotaClass(reads=2, suggest=2, reports=0)
MORE: Final = QuotaClass(reads=5, suggest=6, reports=2)


@contextmanager
def limited(folder: Path, **given: Any) -> Iterator[str]:  # noqa: ANN401 - any setting
    """The service with an anonymous quota of two and five for a token; `given` are more of its settings."""
    settings = {
        "data_dir": embedded_world(folder / "world"),
        "token_file": folder / "tokens.sqlite",
        "reports_file": folder / "reports.sqlite",
        "quota_anonymous": TWO,
        "quota_classes": {"default": MORE},
        "request_timeout": 10.0,
    }
    with served(create_app(Settings(**{**settings, **given}))) as base:
        yield base
