"""A CSV or a workbook as an operator imports it, into a new directory or a catalogue."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from indexer.commands.catalogue import catalogue


class Import:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "list.csv"
        self.made = folder / "made"

    def run(self, text: str | bytes, *options: str) -> Result:
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return CliRunner().invoke(catalogue, ["from-csv", str(self.file), str(self.made), *options])

    def refused(self, text: str | bytes, *options: str) -> str:
        """What is said of a sheet that is not imported; nothing is written then."""
        before = self._files()
        done = self.run(text, *options)
        assert (done.exit_code, self._files()) == (1, before), done.output
        return done.stderr

    def _files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.made.glob("*.ndjson*")}

    def written(self, kind: str = "shops") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.made / f"{kind}.ndjson").read_text(encoding="utf-8").splitlines()]

    def records(self, kind: str, text: str | bytes, *options: str) -> list[dict[str, Any]]:
        done = self.run(text, "--kind", kind, *options)
        assert done.exit_code == 0, done.stderr
        valid = CliRunner().invoke(catalogue, ["validate", str(self.made)])
        assert valid.exit_code == 0, valid.stdout
        return self.written(kind)

    def shops(self, text: str | bytes, *options: str) -> list[dict[str, Any]]:
        return self.records("shops", text, *options)


class Catalogue(Import):
    """A catalogue of two shops, into which more files are imported."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.shops("id,name,url,category\nlamp,Lamp,lamp.example,X\nbook,Book,www.book.example,X\n")
