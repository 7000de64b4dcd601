"""The single changes of which most broken servers are made: of documents, of whole answers, and of arguments."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.people.check.breaking import Answered, Document


def put(path: str, value: Any) -> Callable[[Document], None]:  # noqa: ANN401 - any JSON value
    """A document has this value at a path such as `results.0.name`; `*` stands for each of a list."""
    *parents, name = path.split(".")

    def change(document: Document) -> None:
        for found in _at(document, parents):
            found[name] = value

    return change


def turn(path: str, change: Callable[[Any], object]) -> Callable[[Document], None]:
    *parents, name = path.split(".")

    def changed(document: Document) -> None:
        for found in _at(document, parents):
            found[name] = change(found[name])

    return changed


def drop(path: str) -> Callable[[Document], None]:
    *parents, name = path.split(".")

    def change(document: Document) -> None:
        for found in _at(document, parents):
            del found[name]

    return change


def header(name: bytes, value: bytes | None) -> Callable[[Answered], None]:
    return lambda answered: answered.set_header(name, value)


def more(number: int) -> int:
    return number + 1


def backwards(values: list[Any]) -> list[Any]:
    return values[::-1]


def status(code: int) -> Callable[[Answered], None]:
    def change(answered: Answered) -> None:
        answered.status = code

    return change


def body(content: bytes) -> Callable[[Answered], None]:
    def change(answered: Answered) -> None:
        answered.body = content

    return change


def argument(name: str, kind: type, change: Callable[[Any], Any]) -> Callable[[Document], Document]:
    def changed(arguments: Document) -> Document:
        given = arguments.get(name)
        return {**arguments, name: change(given)} if isinstance(given, kind) else arguments

    return changed


def without(name: str) -> Callable[[Document], Document]:
    return lambda arguments: {other: value for other, value in arguments.items() if other != name}


def default(name: str, value: Any) -> Callable[[Document], Document]:  # noqa: ANN401 - any JSON value
    return lambda arguments: {name: value, **arguments}


def _at(found: Any, steps: list[str]) -> Iterator[Any]:  # noqa: ANN401 - any JSON value
    match steps:
        case []:
            yield found
        case ["*", *others]:
            for one in found:
                yield from _at(one, others)
        case [step, *others]:
            yield from _at(found[int(step)] if isinstance(found, list) else found[step], others)
