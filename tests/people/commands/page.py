"""docs/commands.md, made from the program itself, so that it says what the program does."""

from collections.abc import Iterator
from typing import Final

from shop_directory.settings.exit_codes import MEANINGS
from tests.people.commands.told import Told, all_told

_INTRODUCTION: Final = """\
# Commands

Made from the code by `make commands`: change the commands there, not this file. `shop-directory --help` and the
`--help` or `-h` of each command say the same. Every example here is run by a test.

Options come before the environment; [settings](settings.md) has all variables. `shop-directory --install-completion`
puts completion into bash, zsh, fish or PowerShell; it completes commands, options, engines and ids of tokens.

## Answers and problems

Answers go to standard output, everything else to standard error. `--json` prints one JSON document and nothing beside
it; `rechecks claim` and `rechecks export` print one a line, and `serve` prints one once it serves. What went wrong is
then the last line on standard error: `{"error": {"code": "...", "message": "..."}}`. Escape codes are for terminals
only; `NO_COLOR=1` and `TERM=dumb` leave them out there too.

## Exit codes

| exit code | code in JSON | meaning |
| --- | --- | --- |"""
_HEADS: Final = "| name | value | default | what it is for |\n| --- | --- | --- | --- |"


def commands_page() -> str:
    """The whole page, in Markdown."""
    codes = [
        f"| {exit_code.value} | `{exit_code.name.lower()}` | {meaning} |" for exit_code, meaning in MEANINGS.items()
    ]
    parts = ["\n".join([_INTRODUCTION, *codes])]
    for told in all_told():
        parts += _section(told)
    return "\n\n".join(parts) + "\n"


def _section(told: Told) -> Iterator[str]:
    yield f"## {told.words}"
    yield told.summary
    yield from told.paragraphs
    if told.examples:
        yield "\n".join(["```bash", *told.examples, "```"])
    if told.codes:
        yield f"Exit codes: {', '.join(f'{number} {meaning}' for number, meaning in told.codes)}."
    if told.parameters:
        rows = [
            f"| {', '.join(f'`{name}`' for name in one.names)} | {_cell(one.kind)} | {_cell(one.default)} | "
            f"{_cell(one.help)} |"
            for one in told.parameters
        ]
        yield "\n".join([_HEADS, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
