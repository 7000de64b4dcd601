"""The findings of a comparison: sentences that are computed from the figures.

A sentence begins with HELD or NOT HELD and has its figures. Findings without figures are left out.
"""

from collections.abc import Iterator
from typing import Final

from bench.typeahead.load import Paced
from bench.typeahead.results import Report, Result, Round, Size
from bench.typeahead.system import Role

_MAIN_SIZE: Final = 100_000
_FULL: Final = (
    "exact_name",
    "diacritic",
    "native_script",
    "multiword",
    "domain_fragment",
    "name+category",
)
_COLD, _WARM = "embedded-cold", "embedded-warm"
_OVER_COLD, _OVER_WARM = "opensearch-cold", "opensearch-warm"


def findings(report: Report) -> Iterator[str]:
    """Every sentence of a run; of its largest size up to 100,000 shops, and of how the times grow."""
    if not report.sizes:
        return
    size = main_size(report)
    yield from _compared_with_bare(size)
    yield from _opensearch_against_embedded(size)
    yield from _growth(report)
    yield from _against_peers(size)
    yield from _quality(size)


def main_size(report: Report) -> Size:
    """The size that sentences are about: 100,000 shops, or else the nearest smaller one, or the smallest."""
    fitting = [size for size in report.sizes if size.shops <= _MAIN_SIZE]
    return max(fitting, key=lambda size: size.shops) if fitting else min(report.sizes, key=lambda size: size.shops)


def ahead(size: Size, result: Result) -> list[str]:
    """Where peers are ahead of a system on requests a second, or on p99 of one caller; empty where none is."""
    found = []
    for peer in size.of(Role.PEER):
        if peer.per_second >= result.per_second:
            found.append(f"{peer.name} answers {peer.per_second:,.0f} a second, it {result.per_second:,.0f}")
        theirs, own = peer.lowest(_p99), result.lowest(_p99)
        if theirs <= own:
            found.append(f"{peer.name}'s p99 is {theirs / 1000:.2f} ms, its {own / 1000:.2f} ms")
    return found


def _p50(one: Round) -> float:
    return one.p50_us


def _p99(one: Round) -> float:
    return one.p99_us


def _processor(one: Round) -> float:
    return one.cpu_us


def _held(holds: bool) -> str:  # noqa: FBT001 - the one thing it says
    return "HELD" if holds else "**NOT HELD**"


def _compared_with_bare(size: Size) -> Iterator[str]:
    for bare in size.of(Role.BARE):
        for name, least in ((_COLD, 0.2), (_WARM, 0.7)):
            if one := size.named(name):
                share = one.per_second / bare.per_second
                times = bare.lowest(_processor) / one.lowest(_processor)
                yield (
                    f"{_held(share >= least)}: {name} answers {share:.2f} of the bare server, at least {least:g} "
                    f"wanted; by processor time it would be {times:.2f}."
                )
    bare_tails = {
        # What looks at nothing has the machine's own disturbances, and no others.
        title: f" (the bare server at its half load: {_spread(paced):.1f}, p99 {paced.p99_us / 1000:.2f} ms)"
        for bare in size.of(Role.BARE)
        for title, paced in _arrivals(bare).items()
    }
    for one in size.of(Role.OURS):
        arrivals = _arrivals(one)
        for title, paced in arrivals.items():
            ratio = _spread(paced)
            share = paced.achieved / one.per_second
            yield (
                f"{_held(ratio < 5 and paced.on_rate)}: {one.name} at {share:.2f} of saturation, requests {title}: "
                f"p99 is {ratio:.1f} times its p50, under 5 wanted{bare_tails.get(title, '')}."
            )


def _arrivals(one: Result) -> dict[str, Paced]:
    return {"even": one.calmest(lambda each: each.even), "by chance": one.calmest(lambda each: each.poisson)}


def _spread(paced: Paced) -> float:
    return paced.p99_us / max(paced.p50_us, 1.0)


def _opensearch_against_embedded(size: Size) -> Iterator[str]:
    warm, over = size.named(_WARM), size.named(_OVER_WARM)
    if warm and over:
        share = over.per_second / warm.per_second
        yield f"{_held(share >= 0.9)}: {_OVER_WARM} answers {share:.2f} of {_WARM}, at least 0.9 wanted."


def _growth(report: Report) -> Iterator[str]:
    ends = sorted(report.sizes, key=lambda size: size.shops)
    small, large = ends[0], ends[-1]
    if small.shops == large.shops:
        return
    for name in (_COLD, _OVER_COLD):
        first, last = small.named(name), large.named(name)
        if first and last:
            grown = last.lowest(_p50) / first.lowest(_p50)
            yield (
                f"{_held(grown <= 3)}: from {small.shops:,} to {large.shops:,} shops the p50 of {name} grows "
                f"{grown:.2f} times, at most 3 wanted."
            )


def _against_peers(size: Size) -> Iterator[str]:
    if not size.of(Role.PEER):
        yield "No peer took part."
        return
    peers = f"every peer ({len(size.of(Role.PEER))} took part)"
    for one in size.of(Role.OURS):
        if found := ahead(size, one):
            yield f"**NOT HELD**: {one.name} ahead of {peers} at {size.shops:,} shops; {'; '.join(found)}."
        else:
            yield f"HELD: {one.name} is ahead of {peers} on requests a second and p99 at {size.shops:,} shops."


def _quality(size: Size) -> Iterator[str]:
    for title, one in size.judged():
        if one.role is not Role.OURS or one.quality is None:
            continue
        full = {name: quality.success_8 for name, quality in one.quality.classes.items() if name in _FULL}
        classes = ", ".join(f"{name} {success:.3f}" for name, success in full.items())
        held = _held(min(full.values(), default=0) >= 0.97)
        yield f"{held}: success@8 of {title}: {classes}; at least 0.97 each wanted."
        worse = "".join(f"; {each}" for each in _worse(size, one))
        yield f"{_held(not worse)}: {title}: in no class below the best peer, no more keystrokes{worse}."


def _worse(size: Size, one: Result) -> Iterator[str]:
    """Where the best peer is better."""
    peers = [peer for peer in size.of(Role.PEER) if peer.quality is not None]
    if one.quality is None or not peers:
        return
    for title, take in (("success@8", _success_8), ("success@1", _success_1)):
        for name in one.quality.classes:
            best = max(peers, key=lambda peer: take(peer, name))
            if take(best, name) > take(one, name):
                yield f"{title} of {name}: {best.name} {take(best, name):.3f}, it {take(one, name):.3f}"
    least = min(peers, key=_keystrokes)
    if _keystrokes(least) < one.quality.keystrokes:
        yield f"keystrokes: {least.name} {_keystrokes(least):.2f}, it {one.quality.keystrokes:.2f}"


def _success_8(result: Result, name: str) -> float:
    return result.quality.classes[name].success_8 if result.quality and name in result.quality.classes else 0.0


def _success_1(result: Result, name: str) -> float:
    return result.quality.classes[name].success_1 if result.quality and name in result.quality.classes else 0.0


def _keystrokes(result: Result) -> float:
    return result.quality.keystrokes if result.quality else float("inf")
