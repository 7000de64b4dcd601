"""Every test that asks for `make_limiter` runs on both limiters."""

import secrets
from collections.abc import Callable

import pytest

from service.limits.blocks import BlockLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import Limiter
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock

MakeLimiter = Callable[[HandClock], Limiter]


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.redis)])
def make_limiter(request: pytest.FixtureRequest) -> MakeLimiter:
    """Makes a limiter of one kind, on a clock; the caller closes it. Each has keys of its own."""
    if request.param == "memory":
        return MemoryLimiter
    access = RedisAccess(request.getfixturevalue("redis_url"))
    return lambda clock: BlockLimiter(RedisLimiter(access, f"test-{secrets.token_hex(6)}", timeout=5, clock=clock))
