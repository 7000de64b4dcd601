"""An operator with an index and a catalogue, who runs the commands of `shop-directory index` in this process."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner, Result

from indexer.__main__ import index
from indexer.sinks.embedded.sink import EmbeddedSink
from tests.support.catalogues import shop, write_catalogue_directory

UNSET: Final = dict.fromkeys(
    f"SHOP_DIRECTORY_{name}"
    for name in (
        "ENGINE", "DATA_DIR", "STATE_DIR", "OPENSEARCH_URLS", "OPENSEARCH_SHARDS", "INDEX_PREFIX", "SQL_URL",
        "MOST_SHRINK",
    )
)  # fmt: skip

LAMP, BOOK, VASE = (shop(name, id=name.lower()) for name in ("Lamp", "Book", "Vase"))


class Operator:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalogue = folder / "catalogue"
        self.sink = EmbeddedSink(folder / "index")

    def write(self, *shops: Mapping[str, Any]) -> None:
        write_catalogue_directory(self.catalogue, shops=shops)

    def change(self, **change: Any) -> None:  # noqa: ANN401 - JSON values
        with (self.catalogue / "changes.ndjson").open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(change)}\n")

    def run(self, command: str, *arguments: str, **environment: str) -> Result:
        given = [command, "--data-dir", str(self.folder / "index"), *arguments]
        return CliRunner().invoke(index, given, env={**UNSET, **environment})

    def build(self, *shops: Mapping[str, Any], arguments: tuple[str, ...] = ()) -> Result:
        self.write(*shops)
        return self.run("build", "--catalogue", str(self.catalogue), *arguments)

    def run_json(self, command: str, *arguments: str) -> dict[str, Any]:
        done = self.run(command, *arguments, "--json")
        assert done.exit_code == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    @property
    def live(self) -> str:
        found = self.sink.live()
        assert found is not None
        return found.generation
