"""docs/commands.md, made from the program itself, so that it says what the program does."""

from collections.abc import Iterator
from typing import Final

from shop_directory.settings.commands import MEANINGS
from tests.people.commands.descriptions import Description, all_descriptions

_INTRODUCTION: Final = """\
# Commands

Made from the code by `make commands`: change the commands there, not this file. `shop-directory --help` and the
`--help` or `-h` of each command say the same. Every example here is run by a test.

Options come before the environment; [settings](settings.md) has all variables. `shop-directory --install-completion`
puts completion into bash, zsh, fish or PowerShell; it completes commands, options, engines and ids of tokens.

## Answers and problems

Answers go to standard output, everything else to standard error. `--json` prints one JSON document and nothing
else; `rechecks claim` and `rechecks export` print one a line, and `serve` prints one once it serves. What went wrong is
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
    for command in all_descriptions():
        parts += _section(command)
    return "\n\n".join(parts) + "\n"


def _section(command: Description) -> Iterator[str]:
    yield f"## {command.words}"
    yield command.summary
    yield from command.paragraphs
    if command.examples:
        yield "\n".join(["```bash", *command.examples, "```"])
    if command.codes:
        yield f"Exit codes: {', '.join(f'{number} {meaning}' for number, meaning in command.codes)}."
    if command.parameters:
        rows = [
            f"| {', '.join(f'`{name}`' for name in one.names)} | {_cell(one.kind)} | {_cell(one.default)} | "
            f"{_cell(one.help)} |"
            for one in command.parameters
        ]
        yield "\n".join([_HEADS, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
