"""Reads the small files of an index directory: the pointer file, stamps and operations documents.

Only the pointer file determines the live generation; a stamp must name the generation in whose directory it is.
"""

from pathlib import Path

from index_mappings.embedded import operations_path, pointed_to, pointer_path, stamp_path
from index_mappings.generations import Operations, Stamp
from index_mappings.integrity import from_checked_json, from_stamp_json
from service.search.failures import BackendUnavailable, NothingPublished
from service.search.protocol import Generations


def read_live(root: Path) -> Stamp:
    """The live generation's stamp.

    Raises:
        NothingPublished: there is no live generation yet.
        BackendUnavailable: a file cannot be read, or is damaged.
    """
    live, _ = _pointer(root)
    return read_stamp(root, live)


def read_generations(root: Path) -> Generations:
    """Both stamps, and the operations document of the live generation. Errors as in `read_live`."""
    live, previous = _pointer(root)
    return Generations(
        live=read_stamp(root, live),
        previous=None if previous is None else _stamp_if_present(root, previous),
        operations=_operations(root, live),
    )


def _pointer(root: Path) -> tuple[str, str | None]:
    pointer = pointer_path(root)
    try:
        return pointed_to(pointer.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise NothingPublished(
            f"nothing is published in {root.resolve()}, the directory of --data-dir or SHOP_DIRECTORY_DATA_DIR"
        ) from error
    except OSError as error:
        raise BackendUnavailable(f"cannot read {pointer}") from error
    except ValueError as error:
        raise BackendUnavailable(f"{pointer} names no generation") from error


def read_stamp(root: Path, generation: str) -> Stamp:
    """The stamp of a generation.

    Raises:
        BackendUnavailable: it cannot be read, or is damaged.
    """
    try:
        stamp = from_stamp_json(stamp_path(root, generation).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(f"cannot read the stamp of generation {generation}") from error
    if stamp.generation != generation:
        raise BackendUnavailable(f"the stamp in the directory of generation {generation} names another generation")
    return stamp


def _stamp_if_present(root: Path, generation: str) -> Stamp | None:
    # The pointer file may still name a previous generation that was removed.
    return read_stamp(root, generation) if stamp_path(root, generation).exists() else None


def _operations(root: Path, generation: str) -> Operations | None:
    try:
        return Operations.from_wire(from_checked_json(operations_path(root, generation).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
