"""Options that commands of both sides have."""

from pathlib import Path
from typing import Annotated, Final

import typer

from shop_directory.settings.exit_codes import problems_as_json

# The panel of `--help` for options that name an index.
WHERE: Final = "Where the index is"
_ENGINES: Final = ("embedded", "opensearch")


def _engines(incomplete: str) -> list[str]:
    return [name for name in _ENGINES if name.startswith(incomplete)]


EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        autocompletion=_engines,
        show_default="embedded",
        help=r"embedded or opensearch. \[env: SHOP_DIRECTORY_ENGINE]",
        rich_help_panel=WHERE,
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        show_default="var/index",
        help=r"The embedded engine's directory. \[env: SHOP_DIRECTORY_DATA_DIR]",
        rich_help_panel=WHERE,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", callback=problems_as_json, is_eager=True, help="Print one JSON document instead.")
]
