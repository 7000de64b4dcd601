"""Which files of a shared folder a process still needs: those of the newest stamps and of what is announced."""

from typing import Final

from index_mappings.typeahead.manifest import TypeaheadManifest

# The live stamp and the former one, which still answers; and as many of the generation before, for a rollback.
_STAMPS: Final = 2
_GENERATIONS: Final = 2


class NeededManifests:
    """The manifests whose files stay."""

    def __init__(self) -> None:
        """Begin with none."""
        # By generation and name; in both the one that was needed last at the end.
        self._manifests: dict[str, dict[str, TypeaheadManifest]] = {}
        self._announced: tuple[str, TypeaheadManifest] | None = None

    def note(self, generation: str, name: str, manifest: TypeaheadManifest) -> None:
        """A manifest is needed now."""
        of_generation = self._manifests.pop(generation, {})
        of_generation.pop(name, None)
        of_generation[name] = manifest
        self._manifests[generation] = dict(list(of_generation.items())[-_STAMPS:])
        self._manifests = dict(list(self._manifests.items())[-_GENERATIONS:])

    def announce(self, name: str, manifest: TypeaheadManifest) -> None:
        """A manifest will be needed; it takes the place of the one that was announced before."""
        self._announced = name, manifest

    def names(self) -> frozenset[str]:
        """The names of all files that stay, manifests included."""
        manifests = [item for of_generation in self._manifests.values() for item in of_generation.items()]
        if self._announced is not None:
            manifests.append(self._announced)
        return frozenset(name for own_name, manifest in manifests for name in (own_name, *manifest.files()))
