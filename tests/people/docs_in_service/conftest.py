"""The calls of the examples, made once for all tests of this folder."""

import pytest

from service.rest.openapi.examples import Exchange
from tests.people.docs_in_service.recording import record


@pytest.fixture(scope="package")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exchange, ...]:
    """What the service answers just now."""
    return record(tmp_path_factory.mktemp("examples"))
