"""The balance of coupons against the oracle: random coupons and clocks, equal answers and nothing lost (A4 to A6)."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.values import microseconds
from service.search.protocol import CouponQuery, Snapshot
from tests.rules.backends.agreement import MANY, OPENSEARCH, QUESTIONS, compare
from tests.rules.backends.backends import Opener
from tests.support.catalogues import shop

_TICK: Final = timedelta(microseconds=1)
_TIMESTAMPS: Final = [datetime(2031, 5, 6, hour, tzinfo=UTC) for hour in range(4)]
_SHOPS: Final = [
    shop("Nord", "nord.internal", id="s1"),
    shop("Sud", "sud.test", id="s2"),
    shop("Ost", "example.com", id="s3"),
    shop("Hidden", "hidden.internal", id="h", visibility="under_review"),
]
_REFERENCES: Final = (None, "s1", "nord.internal", "s2", "sud.test", "s3", "h", "hidden.internal", "nobody")

pytestmark = pytest.mark.rule("A4", "A5", "A6", "I18", "I20", "I39", "I40", "I41", "M11.other_lists")

_timestamps = st.one_of(st.none(), st.sampled_from(_TIMESTAMPS).map(datetime.isoformat))


@st.composite
def _lines(draw: st.DrawFn) -> dict[str, Any]:
    """One line of `coupons`, without its id."""
    status = draw(st.sampled_from(("verified_applied", "verified_rejected", "unverified", "unverified")))
    verified = draw(_timestamps if status == "unverified" else st.sampled_from(_TIMESTAMPS).map(datetime.isoformat))
    return {
        "shop_id": draw(st.sampled_from(("s1", "s1", "s2", "s3", "h", "nobody"))),
        "code": draw(st.sampled_from(("A", "a", "SAVE", "5%"))),
        "valid_from": draw(_timestamps),
        "valid_until": draw(st.one_of(_timestamps, st.just("2031-05-06"))),
        "verification_status": status,
        "last_verified_at": verified,
        "blocked_channels": draw(st.lists(st.sampled_from(("rest", "mcp", "stdio")), max_size=2, unique=True)),
        "blocked_countries": draw(st.lists(st.sampled_from(("AT", "DE")), max_size=2, unique=True)),
    }


_catalogues = st.lists(_lines(), max_size=40).map(
    lambda lines: [{"id": f"c{number}", **line} for number, line in enumerate(lines)]
)
# On a bound, one microsecond before it and one after it.
_clocks = st.builds(
    lambda timestamp, ticks: microseconds(timestamp + ticks * _TICK),
    st.sampled_from([*_TIMESTAMPS, datetime(2031, 5, 6, 23, 59, 59, tzinfo=UTC)]),
    st.integers(-1, 1),
)
_queries = st.builds(
    CouponQuery,
    shop=st.sampled_from(_REFERENCES),
    now_us=_clocks,
    channel=st.sampled_from(("rest", "mcp", "stdio")),
    country=st.sampled_from((None, "AT", "DE", "FR")),
    list_limit=st.sampled_from((None, None, None, 0, 3)),
)


def _taking_part(catalogue: list[dict[str, Any]], query: CouponQuery) -> int:
    """How many coupons of public shops have begun: the number that the balance must come to."""
    public = {fields["id"]: fields["domain"] for fields in _SHOPS if fields["visibility"] == "public"}
    return sum(
        line["shop_id"] in public
        and query.shop in (None, line["shop_id"], public[line["shop_id"]])
        and (line["valid_from"] is None or microseconds(datetime.fromisoformat(line["valid_from"])) <= query.now_us)
        for line in catalogue
    )


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("opener", ["reference", "embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=_catalogues, data=st.data())
def test_the_balance_comes_to_every_coupon_once_on_every_engine(
    opener: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    asked = [data.draw(_queries) for _ in range(QUESTIONS)]

    async def ask(oracle: Snapshot, tested: Snapshot) -> None:
        for query in asked:
            found = await tested.coupons(query)
            assert found == await oracle.coupons(query), query
            if found is None:
                assert query.shop in ("h", "hidden.internal", "nobody")
                continue
            withheld = found.expired + found.rejected + found.reserved + found.policy
            assert found.usable + withheld == _taking_part(catalogue, query), query
            if found.views is None:
                assert query.list_limit is not None
                assert found.usable > query.list_limit
            else:
                assert len(found.views) == found.usable, query

    compare(opener, ask, _SHOPS, coupons=catalogue)
