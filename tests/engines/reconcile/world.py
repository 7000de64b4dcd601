"""A small world whose index, state or source is spoilt on purpose, and what a comparison is asked for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from index_mappings.documents import ShopDocument
from indexer.jobs.update import ChangeApplier
from indexer.projection import Projector, project_coupon, project_shop, related_digest
from indexer.reconcile.generation import FaultReport, Faults
from indexer.reconcile.live import Timer, VerifyOptions, verify_live
from indexer.records.related import CouponRecord
from indexer.records.shop import ShopRecord
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import State
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import Lines, coupon, offer, policy, redirect, shipping, shop, trust

# Ten public shops, one that is under review, one that loses its domain to a better rank.
PUBLIC: Final = tuple(
    shop(f"Shop {n}", f"shop-{n}.internal", id=f"s{n}", categories=["things", f"kind-{n % 3}"]) for n in range(10)
)
HIDDEN: Final = shop("Under Review", "hidden.internal", id="hidden", categories=["secrets"], visibility="under_review")
LOSER: Final = shop("Loser", "shop-3.internal", id="z-loser", categories=["things"])
SHOPS: Final = (*PUBLIC, HIDDEN, LOSER)
COUPONS: Final = (
    *(coupon("SAVE", f"s{n}", id=f"c{n}") for n in range(5)),
    coupon("SECRET", "hidden", id="c-hidden"),
    coupon("SECRET2", "hidden", id="a-hidden"),
)
OFFERS: Final = (*(offer(f"o{n}", f"s{n}") for n in range(6)), offer("o-hidden", "hidden"))
OTHERS: Final[Mapping[str, Lines]] = {
    "coupons": COUPONS,
    "offers": OFFERS,
    "shipping": [shipping("s1"), shipping("hidden")],
    "policies": [policy("s3", "returns", "AT"), policy("s3", "returns"), policy("hidden", "returns")],
    "trust": [trust("s2", "tls_grade", "A")],
    "redirects": [redirect("shop-1.internal", "shop-2.internal")],
}
# Ten shops and their facts, four categories, five coupons, six offers.
DOCUMENTS_OF_THE_WORLD: Final = 10 + 10 + 4 + 5 + 6


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def timer(self) -> Timer:
        return Timer(lambda: self.seconds, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class World(FollowedIndex):
    @property
    def generation(self) -> str:
        return self.live.generation

    @property
    def source(self) -> NdjsonCatalogue:
        return NdjsonCatalogue(self.catalogue)

    @contextmanager
    def editing(self) -> Iterator[tuple[State, GenerationEditor]]:
        with closing(self.sink.edit(self.generation)) as editor, self.states.open(self.generation) as state:
            yield state, editor

    def reconcile(self, *, repair: bool, rate: float | None = None) -> FaultReport:
        options = VerifyOptions(repair=repair, rate=rate)
        return verify_live(self.sink, self.states, options=options, timer=Clock().timer).found

    def found_and_repaired(self) -> Faults:
        """The faults: a repair finds the same ones, repairs each of them, and nothing is wrong afterwards."""
        found, repaired = self.reconcile(repair=False), self.reconcile(repair=True)
        assert (repaired.faults, repaired.remaining) == (found.faults, 0)
        assert self.reconcile(repair=False).faults == {}
        return found.faults

    def applier(self, state: State, editor: GenerationEditor) -> ChangeApplier:
        return ChangeApplier(state, editor, self.source.changes(), DeadLetters(self.states.dead_letters), lambda: None)


def built(sink: Sink, directory: Path) -> World:
    world = World(directory, sink, {"shops": SHOPS, **OTHERS})
    world.build()
    return world


def lose(kind: str, document_id: str) -> Callable[[State, GenerationEditor], None]:
    return lambda _, editor: _wrote(editor.write(kind, [], [document_id]))


def change(kind: str, document_id: str, like: str) -> Callable[[State, GenerationEditor], None]:
    """Give a document the contents of another one, under its own id: one of which no record knows, too."""

    def spoil(state: State, editor: GenerationEditor) -> None:
        _wrote(editor.write(kind, [_renamed(Projector(state).document(kind, like), document_id)], []))

    return spoil


def stale_terms(shop_id: str) -> Callable[[State, GenerationEditor], None]:
    """Write a shop as if none of its coupons had been known."""

    def spoil(state: State, editor: GenerationEditor) -> None:
        document = public(state, shop_id)
        assert document.codes
        stale = replace(document, codes=(), related_digest=related_digest(document.ships_to, ()))
        _wrote(editor.write("shops", [stale], []))

    return spoil


def add_shop(shop_id: str) -> Callable[[State, GenerationEditor], None]:
    return lambda state, editor: _wrote(editor.write("shops", [hidden(state, shop_id)], []))


def add_coupon(key: str) -> Callable[[State, GenerationEditor], None]:
    def spoil(state: State, editor: GenerationEditor) -> None:
        row = state.rows.row("coupons", key)
        assert row is not None
        record = CouponRecord.model_validate_json(str(row.text))
        _wrote(editor.write("coupons", [project_coupon(record, _record(state, str(row.owner)))], []))

    return spoil


def public(state: State, shop_id: str) -> ShopDocument:
    document = Projector(state).document("shops", shop_id)
    assert isinstance(document, ShopDocument)
    return document


def hidden(state: State, shop_id: str) -> ShopDocument:
    return project_shop(_record(state, shop_id), (), 0, ())


def _record(state: State, shop_id: str) -> ShopRecord:
    row = state.rows.row("shops", shop_id)
    assert row is not None
    assert row.shop is not None
    return row.shop


def plant(world: World, *faults: Callable[[State, GenerationEditor], None]) -> None:
    """Spoil the live generation; readers see it, its stamp says nothing of it."""
    with world.editing() as (state, editor):
        for fault in faults:
            fault(state, editor)
        editor.show()


def _wrote(refused: int) -> None:
    assert refused == 0


def _renamed(document: object, document_id: str) -> object:
    values = {name: getattr(document, name) for name in type(document).__slots__}  # type: ignore[attr-defined]
    return type(document)(**{**values, "id": document_id})
