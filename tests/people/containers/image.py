"""The Dockerfile, as BuildKit's own parser reads it."""

import shlex
from dataclasses import dataclass
from typing import Final

import dockerfile

from tests.support.real.sources import REPOSITORY

DOCKERFILE: Final = REPOSITORY / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name, its words, its flags, and whether it was written as a JSON list."""

    name: str
    words: tuple[str, ...]
    flags: tuple[str, ...]
    is_list: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions from one FROM to the next."""

    instructions: tuple[Instruction, ...]

    def of(self, name: str) -> tuple[Instruction, ...]:
        return tuple(found for found in self.instructions if found.name == name)

    def only(self, name: str) -> Instruction:
        (found,) = self.of(name)
        return found

    @property
    def arguments(self) -> dict[str, str]:
        return dict(split_argument(found) for found in self.of("ARG"))

    def environment(self, **arguments: str) -> dict[str, str]:
        """What ENV sets, with build arguments given."""
        found: dict[str, str] = {}
        for instruction in self.of("ENV"):
            names, values = instruction.words[::2], instruction.words[1::2]
            found.update(zip(names, values, strict=True))
        for name, default in self.arguments.items():
            found = {key: value.replace(f"${{{name}}}", arguments.get(name, default)) for key, value in found.items()}
        return found


def split_argument(instruction: Instruction) -> tuple[str, str]:
    """The name and the default of an ARG."""
    name, _, default = instruction.words[0].partition("=")
    return name, "".join(shlex.split(default))


def instructions() -> tuple[Instruction, ...]:
    return tuple(
        Instruction(found.cmd, tuple(found.value), tuple(found.flags), bool(found.json))
        for found in dockerfile.parse_file(str(DOCKERFILE))
    )


def stages() -> tuple[Stage, ...]:
    """The stages, without what stands before the first."""
    every = instructions()
    begins = [number for number, found in enumerate(every) if found.name == "FROM"]
    return tuple(Stage(every[begin:end]) for begin, end in zip(begins, [*begins[1:], len(every)], strict=True))
