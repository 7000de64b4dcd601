"""How the suites of random catalogues run: how many examples, of which engines.

`SHOP_DIRECTORY_AGREEMENT=100x20` asks for another number of catalogues and of questions for each; 15x20 otherwise.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

CATALOGUES, QUESTIONS = map(int, os.environ.get("SHOP_DIRECTORY_AGREEMENT", "15x20").split("x"))
OPENSEARCH: Final = pytest.param("opensearch", marks=pytest.mark.opensearch)
# The fixture only says which engine is opened: it holds nothing from one example to the next.
MANY: Final = settings(
    max_examples=CATALOGUES,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
