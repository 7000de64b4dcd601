"""Recognises columns of a CSV that say which shops are suspended, and converts their values to visibilities."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from indexer.catalogue.csv_columns import position_of
from indexer.records.problems import CatalogueError

# By language, in lower case: words that name such a column, words for shops that are shown, and for those that are not.
# Source: compiled by hand for this project, from the states that shop systems and directories give to accounts, with
# their dictionary translations; no list of others is copied.
_WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "en": (
        "status active enabled disabled blocked banned suspended deleted archived published approval moderation",
        "active enabled live online published approved open ok",
        "inactive disabled blocked banned suspended deleted removed archived hidden paused closed draft rejected",
    ),
    "de": (
        "status aktiv gesperrt deaktiviert geloescht gelöscht freigabe freigegeben sichtbar",
        "aktiv freigegeben freigabe sichtbar veröffentlicht freigeschaltet offen",
        "inaktiv gesperrt deaktiviert gelöscht geloescht ausgesetzt gekündigt ruhend geschlossen entwurf abgelehnt",
    ),
    "fr": (
        "statut actif bloqué suspendu supprimé",
        "actif active activé publié approuvé ouvert",
        "inactif inactive bloqué suspendu désactivé supprimé archivé fermé brouillon refusé",
    ),
    "es": (
        "estatus activo bloqueado suspendido eliminado",
        "activo activa habilitado publicado aprobado abierto",
        "inactivo inactiva bloqueado suspendido deshabilitado eliminado archivado cerrado pendiente borrador rechazado",
    ),
    "it": (
        "attivo bloccato sospeso eliminato",
        "attivo attiva abilitato pubblicato approvato aperto",
        "inattivo inattiva bloccato sospeso disabilitato eliminato archiviato chiuso bozza rifiutato",
    ),
    "nl": (
        "status actief geblokkeerd opgeschort verwijderd",
        "actief ingeschakeld gepubliceerd goedgekeurd",
        "inactief geblokkeerd opgeschort uitgeschakeld verwijderd gearchiveerd gesloten concept afgewezen",
    ),
    "pl": (
        "status aktywny zablokowany zawieszony usunięty",
        "aktywny włączony opublikowany zatwierdzony",
        "nieaktywny zablokowany zawieszony wyłączony usunięty zarchiwizowany zamknięty szkic odrzucony",
    ),
    "pt": (
        "status situação situacao ativo bloqueado suspenso",
        "ativo ativa habilitado publicado aprovado aberto",
        "inativo inativa bloqueado suspenso desativado excluído removido arquivado fechado pendente rascunho rejeitado",
    ),
    "tr": ("durum durumu etkin aktif engelli", "aktif etkin yayında onaylandı", "pasif engelli askıda silindi kapalı"),
    "sv": ("status aktiv spärrad", "aktiv publicerad godkänd", "inaktiv spärrad avstängd borttagen arkiverad stängd"),
}
_NAMES, _SHOWN, _HIDDEN = (
    frozenset(word for words in _WORDS.values() for word in words[place].split()) for place in range(3)
)
_REMOVED: Final = frozenset({"deleted", "removed", "gelöscht", "geloescht", "supprimé", "eliminado", "eliminato"})
_YES: Final = frozenset(
    {"1", "y", "yes", "true", "t", "j", "ja", "wahr", "oui", "vrai", "si", "sí", "sim", "tak", "evet", "x"}
)
_NO: Final = frozenset(
    {"0", "n", "no", "false", "f", "nein", "falsch", "non", "faux", "não", "nie", "hayır", "nej", "nee"}
)
VISIBILITIES: Final = ("public", "under_review", "removed")
# V1: the length of a value in messages.
_MAX_SHOWN: Final = 60
_MAX_LISTED: Final = 20
# Different values that are counted; more than a status has.
_MAX_COUNTED: Final = 1_000


@dataclass(slots=True)
class Values:
    """The values of a column that are not blank, with the number of their rows.

    Attributes:
        rows: the number of rows of each of the first thousand values, in lower case, with one of its spellings.
        others: the number of rows with a value beyond these.
    """

    rows: Counter[str] = field(default_factory=Counter)
    spellings: dict[str, str] = field(default_factory=dict)
    others: int = 0

    def add(self, text: str) -> None:
        """Count the value of a row."""
        folded = text.casefold()
        if folded in self.rows or len(self.rows) < _MAX_COUNTED:
            self.rows[folded] += 1
            self.spellings.setdefault(folded, text)
        else:
            self.others += 1

    def as_text(self, only: Iterable[str] | None = None) -> str:
        """The most frequent values, each of at most 60 characters, with their rows."""
        chosen = self.rows if only is None else {value: self.rows[value] for value in only}
        listed = Counter(chosen).most_common(_MAX_LISTED)
        texts = [f"{self.spellings[value][:_MAX_SHOWN]!r} {rows:,}" for value, rows in listed]
        more = len(chosen) - len(listed)
        return ", ".join([*texts, f"{more:,} more values"] if more else texts) or "none"


def is_status(name: str, values: Values) -> bool:
    """Whether a column says which shops are suspended, by its name or its values.

    Args:
        name: the plain name of the column, with _ between its words.
        values: of the column.
    """
    if name.rpartition("_")[2] in _NAMES or name.endswith("status"):
        return True
    known = sum(rows for value, rows in values.rows.items() if value in _SHOWN | _HIDDEN)
    return bool(_HIDDEN & values.rows.keys()) and 2 * known >= values.rows.total() + values.others


def suggested(name: str, value: str) -> str:
    """The visibility that a value of a column most probably means; a value that is not known hides the shop."""
    asks_if_shown = name.rpartition("_")[2] in _SHOWN
    shown = (value in _YES) == asks_if_shown if value in _YES | _NO else value in _SHOWN
    if shown or value in VISIBILITIES:
        return VISIBILITIES[0] if shown else value
    return VISIBILITIES[2] if value in _REMOVED else VISIBILITIES[1]


def unknown_values(values: Values, stated: Mapping[str, str]) -> Sequence[str]:
    """The values that are no visibility and have none stated."""
    return [value for value in values.rows if value not in VISIBILITIES and value not in stated]


def stated_values(pairs: Sequence[str], header: Sequence[str]) -> tuple[str | None, Mapping[str, str]]:
    """The column that `--map-value` options are about, and the visibility of each value in lower case.

    Raises:
        CatalogueError: an option has another form, names no column or no visibility, or they are of several columns.
    """
    named: set[str] = set()
    visibilities: dict[str, str] = {}
    for pair in pairs:
        left, _, visibility = pair.rpartition("=")
        # The name of a column may hold a colon, and so may a value.
        splits = [(left[:at], left[at + 1 :]) for at, character in enumerate(left) if character == ":"]
        found = next((split for split in splits if position_of(split[0], header) is not None), None)
        if found is None or visibility not in VISIBILITIES:
            raise CatalogueError(
                f"--map-value {pair!r} is wrong: it must be COLUMN:VALUE=VISIBILITY, with a column of the file"
                f" ({', '.join(filter(None, header))}) and a visibility ({', '.join(VISIBILITIES)})"
            )
        named.add(header[position_of(found[0], header) or 0])
        visibilities[found[1].strip().casefold()] = visibility
    if len(named) > 1:
        raise CatalogueError(f"--map-value names several columns ({', '.join(sorted(named))}): one has the visibility")
    return next(iter(named), None), visibilities


def status_as_text(name: str, plain_name: str, values: Values) -> str:
    """What is wrong with a column that looks like a status and is not mapped, and what to type."""
    return (
        f"the column {name!r} looks as if it said which shops are suspended ({values.as_text()}), and nothing maps it,"
        f" so that all of them would be public: say what its values mean, such as"
        f" `{_options(name, plain_name, values, values.rows)}`, or publish all of them by"
        f" `--map {shlex.quote(f'{name}=')}`"
    )


def unknown_as_text(name: str, values: Values, unknown: Sequence[str]) -> str:
    """What is wrong with values that are no visibility, and what to type."""
    return (
        f"the column {name!r} has values that are no visibility ({values.as_text(unknown)}): say what they mean, such"
        f" as `{_options(name, name.casefold(), values, unknown)}`, or leave these rows out by --skip-invalid"
    )


def _options(name: str, plain_name: str, values: Values, chosen: Iterable[str]) -> str:
    listed = Counter({value: values.rows[value] for value in chosen}).most_common(_MAX_LISTED)
    return " ".join(
        f"--map-value {shlex.quote(f'{name}:{values.spellings[value]}={suggested(plain_name, value)}')}"
        for value, _ in listed
        if len(value) <= _MAX_SHOWN
    )
