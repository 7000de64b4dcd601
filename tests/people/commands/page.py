"""docs/commands.md, made from how each command describes itself, so that it says what the program does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final

from rich.text import Text
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from shop_directory.command_line import NAME, command_line
from shop_directory.settings.commands import ExitCode

_EXAMPLES: Final = "Examples:"
_CODES: Final = "Exit codes: "


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or argument: its names as they are typed, its default and help as help shows them."""

    names: tuple[str, ...]
    kind: str
    default: str
    help: str


@dataclass(frozen=True, slots=True)
class Description:
    """One command, or the program, or a group of commands, by its words, such as `shop-directory index build`.

    `paragraphs` are those behind the summary without examples and exit codes, `parameters` those without `--help` and
    completion. Groups have no codes.
    """

    words: str
    summary: str
    paragraphs: tuple[str, ...]
    examples: tuple[str, ...]
    codes: tuple[tuple[int, str], ...]
    parameters: tuple[Parameter, ...]
    is_group: bool
    widest: int  # the longest line of the text, behind the summary


def all_descriptions() -> tuple[Description, ...]:
    program = get_command(command_line())
    return tuple(_walked(program, Context(program, info_name=NAME), NAME))


def command_descriptions() -> tuple[Description, ...]:
    return tuple(command for command in all_descriptions() if not command.is_group)


def _walked(command: Any, context: Context, words: str) -> Iterator[Description]:  # noqa: ANN401 - Typer's own type is private
    yield _described(command, context, words)
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _walked(below, Context(below, parent=context, info_name=name), f"{words} {name}")


def _described(command: Any, context: Context, words: str) -> Description:  # noqa: ANN401 - as above
    first, *rest = Text.from_markup(cleandoc(command.help or "")).plain.split("\n\n")
    paragraphs, examples, codes = [], [], ""
    for paragraph in rest:
        if paragraph.startswith(_EXAMPLES):
            examples = [line.strip() for line in paragraph.splitlines()[1:]]
        elif paragraph.startswith(_CODES):
            codes = paragraph.removeprefix(_CODES).replace("\n", " ")
        else:
            paragraphs.append(paragraph.replace("\n", " "))
    return Description(
        words,
        first.replace("\n", " "),
        tuple(paragraphs),
        tuple(examples),
        tuple((int(number), meaning) for number, meaning in re.findall(r"\b(\d+) (.+?)(?=, \d+ |\.$)", codes)),
        tuple(
            _parameter(found, context)
            for found in command.params
            if not found.hidden and "completion" not in found.name
        ),
        isinstance(command, TyperGroup),
        max((len(line) for paragraph in rest for line in paragraph.splitlines()), default=0),
    )


def _parameter(found: Any, context: Context) -> Parameter:  # noqa: ANN401 - as above
    names = tuple(found.opts) if found.param_type_name == "option" else (found.metavar or found.name.upper(),)
    is_flag = bool(getattr(found, "is_flag", False))
    default = found._extract_default_help_str(ctx=context)
    shown = "" if is_flag or default is None else str(getattr(default, "value", default))
    if isinstance(found.show_default, str):
        shown = found.show_default
    if found.required:
        shown = "required"
    text = Text.from_markup(found.help or "").plain
    if found.envvar and found.show_envvar:
        text += f" [env: {found.envvar}]"
    return Parameter(names, "flag" if is_flag else found.display_type(context).strip("<>"), shown, text)


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
    codes = [f"| {exit_code.value} | `{exit_code.name.lower()}` | {exit_code.meaning} |" for exit_code in ExitCode]
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
