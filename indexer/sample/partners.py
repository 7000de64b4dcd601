"""The partners of shops and operator: affiliate programmes, observed redirects, accounts with providers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from indexer.sample.featured import FEATURED
from indexer.sample.hidden_shops import HIDDEN_REDIRECTS
from indexer.sample.named_shops import EDGE_CASES
from indexer.sample.records import AffiliateProgram, Redirect, ResourceAccount, Shop
from indexer.sample.seeded_random import digest, seeded_random, time_before

_JOINED: Final = 0.12


@dataclass(frozen=True, slots=True)
class _Network:
    name: str
    template: str
    hosts: tuple[str, ...]
    commission: str | None
    disclosure: str | None


_NETWORKS: Final = (
    _Network(
        "linkmeadow",
        "https://go.linkmeadow.internal/c?p={program}&u={url}",
        ("go.linkmeadow.internal",),
        "4–8 % of the basket, net",
        "Linkmeadow pays the directory a commission for purchases made through this link.",
    ),
    _Network(
        "tollbrook",
        "https://tollbrook.internal/r/{program}?to={url}&via=directory",
        ("tollbrook.internal", "eu.tollbrook.internal"),
        "2 EUR a new customer",
        None,
    ),
    _Network(
        "pfennigpfad", "https://klick.pfennigpfad.internal/{program}/{url}", ("klick.pfennigpfad.internal",), None, None
    ),
)
#: Between public shops; the pair of the lookalikes first.
_PUBLIC_REDIRECTS: Final = (
    ("oldvellumry.internal", "vellumry.internal"),
    ("northpine.test", "northpine.internal"),
    ("pinta-uy.internal", "mayorista.pinta.internal"),
    ("tide-wreck.internal", "tidewrack.internal"),
    ("inci-dukkani.internal", "isil-carsi.internal"),
    ("stellas.internal", "stellas-attic.internal"),
    ("kompass-fritid.internal", "de.kompass.internal"),
    ("samplewood.example.org", "soup.internal"),
)


def affiliate_programs(shops: Iterable[Shop]) -> tuple[AffiliateProgram, ...]:
    """The programmes, ordered by shop id and network; featured shops are with the first network, one shop with all."""
    programs = [program for shop in shops for program in _programs_of(shop)]
    return tuple(sorted(programs, key=lambda program: (program.shop_id, program.network)))


def _programs_of(shop: Shop) -> Iterator[AffiliateProgram]:
    for network in _NETWORKS:
        rng = seeded_random("program", shop.id, network.name)
        joined = shop.domain == EDGE_CASES
        if network.name == "linkmeadow":
            joined = joined or not shop.is_public or shop.domain in FEATURED
        if not joined and rng.random() > _JOINED / len(_NETWORKS):
            continue
        program_id = digest(shop.id, network.name)[:6]
        yield AffiliateProgram(
            shop_id=shop.id,
            network=network.name,
            program_id=program_id,
            url_template=network.template.replace("{program}", program_id),
            network_hosts=network.hosts,
            commission_stated=network.commission,
            disclosure=network.disclosure,
        )


def redirects() -> tuple[Redirect, ...]:
    """The observed redirects, ordered by their two ends; four have an end that is not public."""
    return tuple(
        Redirect(
            from_domain=start,
            to_domain=end,
            observed_at=time_before(seeded_random("redirect", start, end), days=400),
            source=seeded_random("observer", start, end).choice(("operator", "crawl")),
        )
        for start, end in sorted(_PUBLIC_REDIRECTS + HIDDEN_REDIRECTS)
    )


def resource_accounts() -> tuple[ResourceAccount, ...]:
    """The operator's accounts, ordered by provider and account: sufficient, nearly or all used up, unlimited, stale."""
    end, now = "2026-12-01T00:00:00Z", "2026-10-31T23:55:00Z"
    return (
        ResourceAccount("fetchferry", "main", "requests", 182_440, 500_000, end, "ok", now),
        ResourceAccount("linkmeadow", "reports", "calls", 9_610, 10_000, end, "warning", now),
        ResourceAccount("mailwren", "alerts", "messages", 2_000, 2_000, end, "exhausted", now),
        ResourceAccount("mapgrove", "geo", "lookups", 731, None, None, "ok", now),
        ResourceAccount("mapgrove", "old", "lookups", 0, 1_000, None, "unreachable", "2026-08-02T04:00:00Z"),
    )
