"""An environment without settings but those that a test makes."""

import os

import pytest

from shop_directory.settings.reading import PREFIX


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)
    return monkeypatch
