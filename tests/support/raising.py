"""Tools whose code fails with a text that must not be seen; as a program, the service with them on stdio."""

import asyncio
from dataclasses import replace
from typing import Any, Final, NoReturn

import pytest

from service.app import run_stdio
from service.settings.service import Settings
from service.tools.registry import REGISTRY

SECRET: Final = "node-7.internal/coupons-000042"


async def _run(*_: object) -> NoReturn:
    raise RuntimeError(SECRET) from KeyError(SECRET)


RAISING: Final[tuple[Any, ...]] = tuple(replace(tool, run=_run) for tool in REGISTRY)


def main() -> None:
    """Serve until stdin ends."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.parts.REGISTRY", RAISING)
        asyncio.run(run_stdio(Settings.load()))


if __name__ == "__main__":
    main()
