"""The page docs/opensearch-security.md as tests read it: which requests each side sends, and the roles for them."""

import json
import re
from typing import Any, Final

from tests.support.real.secured import Asked
from tests.support.real.sources import REPOSITORY

SIDES: Final = ("service", "indexer")

_PAGE: Final = (REPOSITORY / "docs" / "opensearch-security.md").read_text(encoding="utf-8")


def requests(side: str) -> set[str]:
    """The kinds of requests that the page says a side sends."""
    return {request for request, _ in _rows(side)}


def actions(side: str) -> set[str]:
    """The actions that these are."""
    return {action for _, action in _rows(side)}


def role(side: str) -> dict[str, Any]:
    """The role that the page proposes."""
    (found,) = re.findall(r"```json\n(.*?)```", _section(side), re.DOTALL)
    read: dict[str, Any] = json.loads(found)
    return read


def kind_of(asked: Asked, prefix: str) -> str:
    """What kind of request it is, as the page writes it; a name that is not of the prefix stays as it is."""
    path = asked.path.partition("?")[0].replace("%2C", ",").replace("%2A", "*")
    name = rf"{re.escape(prefix)}-[a-z0-9*-]+"
    path = re.sub(rf"/{name}(,{name})*(?=/|$)", "/<index>", path)
    path = re.sub(r"/_doc/[a-z0-9-]+$", "/_doc/<id>", path)
    path = re.sub(r"/_tasks/[A-Za-z0-9_-]+:[0-9]+$", "/_tasks/<id>", path.replace("%3A", ":"))
    return f"{asked.method} {re.sub(r'/_settings/[a-z.]+$', '/_settings/<name>', path)}"


def indices_in(asked: Asked) -> list[str]:
    """The indices that a body names, of requests that have none in their path."""
    if asked.path.startswith("/_msearch"):
        lines: list[Any] = [json.loads(line) for line in asked.body.splitlines()]
        return [line["index"] for line in lines[::2]]
    if asked.path.startswith("/_mget"):
        return [one["_index"] for one in json.loads(asked.body)["docs"]]
    if asked.path.startswith("/_aliases"):
        moved = [change for action in json.loads(asked.body)["actions"] for change in action.values()]
        return [change[name] for change in moved for name in ("index", "alias")]
    return []


def _rows(side: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| `([A-Z]+ /[^`]*)` \| `([^`]+)` \|$", _section(side), re.MULTILINE)


def _section(side: str) -> str:
    return _PAGE.partition(f"### The {side}\n")[2].partition("\n### ")[0]
