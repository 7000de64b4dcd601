"""Checks the sums that a state keeps of its own records: who has which domain, and the categories' counts (R1, G3).

Documents that follow from false sums are doubtful: they are not held against the index, as the index may be right.
"""

from dataclasses import dataclass
from typing import Final

from indexer.state.shops import COUNTED_CATEGORIES, RIGHTFUL_WINNERS
from indexer.state.state import State

_VIEWS: Final = (
    f"CREATE TEMP VIEW IF NOT EXISTS rightful_winners AS {RIGHTFUL_WINNERS}",
    # Of the rightful winners, whatever the table of winners says.
    f"CREATE TEMP VIEW IF NOT EXISTS counted_categories AS WITH winners AS ({RIGHTFUL_WINNERS}) {COUNTED_CATEGORIES}",
)
_TABLES: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS doubtful (kind TEXT, id TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS differing_shops (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS differing_categories (slug TEXT PRIMARY KEY) WITHOUT ROWID",
    "DELETE FROM temp.doubtful",
    "DELETE FROM temp.differing_shops",
    "DELETE FROM temp.differing_categories",
)
_DIFFERING: Final = (
    """
    INSERT OR IGNORE INTO temp.differing_shops
    SELECT id FROM (SELECT * FROM rightful_winners EXCEPT SELECT * FROM winners)
    """,
    """
    INSERT OR IGNORE INTO temp.differing_shops
    SELECT id FROM (SELECT * FROM winners EXCEPT SELECT * FROM rightful_winners)
    """,
    """
    INSERT OR IGNORE INTO temp.differing_categories
    SELECT slug FROM (SELECT * FROM counted_categories EXCEPT SELECT * FROM category_names)
    """,
    """
    INSERT OR IGNORE INTO temp.differing_categories
    SELECT slug FROM (SELECT * FROM category_names EXCEPT SELECT * FROM counted_categories)
    """,
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
    # The shops at the other ends of redirects show these shops' domains.
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
_REMOVED_SHOPS: Final = """
INSERT OR IGNORE INTO pending SELECT 'unseated', id FROM temp.differing_shops WHERE id NOT IN (SELECT id FROM winners)
"""


@dataclass(frozen=True, slots=True)
class StateFaults:
    """How many shops have a domain or a rank that is not theirs, or lack theirs; how many categories are miscounted."""

    shops: int
    categories: int


def doubt_nothing(state: State) -> None:
    """Note, for this connection, that nothing is doubtful."""
    for statement in (*_VIEWS, *_TABLES):
        state.connection.execute(statement)


def check_state(state: State) -> StateFaults:
    """Compare the sums with a recount. What would follow from false ones is noted as doubtful, for this connection."""
    db = state.connection
    doubt_nothing(state)
    for statement in _DIFFERING:
        db.execute(statement)
    for statement in _DOUBTFUL:
        db.execute(f"INSERT OR IGNORE INTO temp.doubtful {statement}")
    (shops,) = db.execute("SELECT COUNT(*) FROM temp.differing_shops").fetchone()
    (categories,) = db.execute("SELECT COUNT(*) FROM temp.differing_categories").fetchone()
    return StateFaults(shops, categories)


def sums_hold(state: State) -> bool:
    """Whether no sum differs from a recount."""
    return check_state(state) == StateFaults(0, 0)


def settle_state(state: State) -> None:
    """Count all of it anew; what is doubtful is pending then."""
    db = state.connection
    with state.transaction():
        state.shops.settle()
        db.execute("INSERT OR IGNORE INTO pending SELECT kind, id FROM temp.doubtful")
        db.execute(_REMOVED_SHOPS)
        db.execute("DELETE FROM temp.doubtful")
