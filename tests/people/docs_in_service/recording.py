"""The examples of the OpenAPI document, recorded: every call made, every answer as it came."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Final

import service.rest.openapi
from service.rest.openapi import examples
from service.rest.openapi.examples import Exchange
from tests.people.docs_in_service.other_calls import other_calls
from tests.people.docs_in_service.states import states
from tests.people.docs_in_service.tool_calls import tool_calls

FILE: Final = Path(str(files(service.rest.openapi).joinpath(examples.FILE)))


def record(folder: Path) -> tuple[Exchange, ...]:
    """Build and serve the sample in a folder, and make all the calls."""
    with states(folder) as at:
        return tuple(asking.exchange() for asking in (*tool_calls(at), *other_calls(at)))


def written(exchanges: Sequence[Exchange]) -> str:
    """The file's text."""
    return json.dumps([asdict(each) for each in exchanges], indent=1, ensure_ascii=False) + "\n"
