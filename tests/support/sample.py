"""The sample catalogue as one service: what a test needs to call every tool of it over every transport."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexer.sinks.embedded.sink import EmbeddedSink
from service.app import create_app
from tests.support.callers import issue
from tests.support.catalogues import build_into, write_catalogue
from tests.support.served import served, settings_in

SAMPLE: Final = Path(__file__).parents[2] / "indexer" / "sample"

_ANY_NUMBER: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SampleService:
    """The service on the sample, without blocked channels and bounds of transports, so that all of these answer alike.

    Its token counts; `variables` make a process on stdio the same service.
    """

    base: str
    catalogue: Path
    index: Path
    token: str
    variables: dict[str, str]


@contextmanager
def sample_service(folder: Path, source: Path = SAMPLE, /, **given: Any) -> Iterator[SampleService]:  # noqa: ANN401 - any setting
    """Build and serve it, or another catalogue, in a folder; `given` are more of its settings."""
    catalogue = folder / "catalogue"
    for path in source.glob("*.ndjson"):
        write_catalogue(catalogue / path.name, (_without_channels(line) for line in records(path)))
    build_into(EmbeddedSink(folder / "sample"), catalogue)
    tokens, reports = folder / "tokens.sqlite", folder / "reports.sqlite"
    token = issue(tokens).text
    settings = settings_in(folder, data_dir=folder / "sample", most_coupons_mcp=_ANY_NUMBER, **given)
    variables = {
        "SHOP_DIRECTORY_TOKEN_FILE": str(tokens),
        "SHOP_DIRECTORY_REPORTS_FILE": str(reports),
        "SHOP_DIRECTORY_MOST_COUPONS_MCP": str(_ANY_NUMBER),
    }
    with served(create_app(settings)) as base:
        yield SampleService(base, catalogue, folder / "sample", token, variables)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _without_channels(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "blocked_channels"}
