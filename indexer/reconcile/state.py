"""Checks the derived tables of a state: which shop has which domain, and the categories' counts (R1, G3).

Documents that follow from wrong rows are doubtful: a difference in the index is no fault, as the index may be right.
"""

from typing import Final

from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.state.shops import COUNTED_CATEGORIES, DOMAIN_WINNERS
from indexer.state.state import State

_TABLES: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS doubtful (kind TEXT, id TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID",
    """
    CREATE TEMP TABLE IF NOT EXISTS rightful_winners (id TEXT PRIMARY KEY, rank TEXT, domain TEXT, line INTEGER)
    WITHOUT ROWID
    """,
    "CREATE TEMP TABLE IF NOT EXISTS counted_categories (slug TEXT, name TEXT, shops INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS differing_shops (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS differing_categories (slug TEXT PRIMARY KEY) WITHOUT ROWID",
    "DELETE FROM temp.doubtful",
    "DELETE FROM temp.rightful_winners",
    "DELETE FROM temp.counted_categories",
    "DELETE FROM temp.differing_shops",
    "DELETE FROM temp.differing_categories",
)
# Stored, because several comparisons read the winners, and sorting a million shops takes seconds.
_RECOUNT: Final = (
    f"INSERT INTO temp.rightful_winners {DOMAIN_WINNERS} ORDER BY id",
    # Counted from the rightful winners, whatever the table of winners holds.
    f"INSERT INTO temp.counted_categories WITH winners AS (SELECT * FROM temp.rightful_winners) {COUNTED_CATEGORIES}",  # noqa: S608 - nothing but constants of this package
)
# Rows of one side that the other lacks.
_DIFFERING: Final = tuple(
    f"INSERT OR IGNORE INTO temp.{table} SELECT {key} FROM (SELECT * FROM {one} EXCEPT SELECT * FROM {other})"  # noqa: S608 - nothing but constants of this module
    for table, key, derived, counted in (
        ("differing_shops", "id", "winners", "temp.rightful_winners"),
        ("differing_categories", "slug", "category_names", "temp.counted_categories"),
    )
    for one, other in ((counted, derived), (derived, counted))
)
_DOUBTFUL: Final = (
    "SELECT 'shops', id FROM temp.differing_shops",
    "SELECT 'facts', id FROM temp.differing_shops",
    """
    SELECT type, key FROM temp.differing_shops CROSS JOIN belongings ON owner = id WHERE type IN ('coupons', 'offers')
    """,
    "SELECT 'categories', slug FROM temp.differing_categories",
    """
    SELECT 'categories', value ->> 'slug' FROM temp.differing_shops CROSS JOIN shops USING (id),
    json_each(shops.record, '$.categories') WHERE record IS NOT NULL
    """,
    # The shops at the other ends of redirects show the domains of these shops.
    """
    WITH ends (domain) AS (
        SELECT domain FROM temp.differing_shops JOIN winners USING (id)
        UNION SELECT domain FROM temp.differing_shops JOIN shops USING (id) WHERE shown
    ), linked (domain) AS (
        SELECT domain FROM ends
        UNION SELECT other FROM ends CROSS JOIN belongings ON owner = domain WHERE type = 'redirects'
        UNION SELECT owner FROM ends CROSS JOIN belongings ON other = domain WHERE type = 'redirects'
    ) SELECT 'shops', id FROM linked JOIN winners USING (domain)
    """,
)
_COUNTS: Final = """
SELECT 'shops', COUNT(*) FROM temp.differing_shops
UNION ALL SELECT 'categories', COUNT(*) FROM temp.differing_categories
"""
_REMOVED_SHOPS: Final = """
INSERT OR IGNORE INTO pending SELECT 'unseated', id FROM temp.differing_shops WHERE id NOT IN (SELECT id FROM winners)
"""


def clear_doubtful(state: State) -> None:
    """Make the tables of doubtful documents for this connection, empty."""
    for statement in _TABLES:
        state.connection.execute(statement)


def check_state(state: State) -> FaultReport:
    """Compare the derived tables with a recount; documents of wrong rows are doubtful, for this connection.

    The faults are shops whose domain or rank is wrong or missing, and categories with a wrong count.
    """
    db = state.connection
    clear_doubtful(state)
    for statement in (*_RECOUNT, *_DIFFERING):
        db.execute(statement)
    for statement in _DOUBTFUL:
        db.execute(f"INSERT OR IGNORE INTO temp.doubtful {statement}")
    return FaultReport(tuple(FaultCount(Fault.STATE, kind, number) for kind, number in db.execute(_COUNTS) if number))


def derived_tables_match(state: State) -> bool:
    """Whether the derived tables equal a recount."""
    return not check_state(state).total


def rebuild_derived_tables(state: State) -> None:
    """Rebuild the derived tables; doubtful documents are pending then."""
    db = state.connection
    with state.transaction():
        state.shops.settle()
        db.execute("INSERT OR IGNORE INTO pending SELECT kind, id FROM temp.doubtful")
        db.execute(_REMOVED_SHOPS)
        db.execute("DELETE FROM temp.doubtful")
