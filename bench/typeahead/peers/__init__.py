"""The alternatives to this service, each set up as a competent user would in an afternoon.

All index name, aliases and domain, most the names of categories too; all put the more popular of equals first, fold
case and diacritics by their own means, take a country as this service does (shops that state it, or state none), and
read the host from a pasted URL. None has a cache of responses.

Unmeasured out since no registry has them as a package that runs here: Meilisearch and Typesense (clients only).
"""

from typing import Final

from bench.typeahead.peers.node_peers import MiniSearch, Orama
from bench.typeahead.peers.opensearch_raw import OpenSearchAsYouType, OpenSearchCompletion
from bench.typeahead.peers.postgres import PostgresTrigram
from bench.typeahead.peers.sonic import Sonic
from bench.typeahead.peers.sqlite import SqliteTrigram
from bench.typeahead.peers.tantivy_raw import TantivyRaw
from bench.typeahead.system import System

PEERS: Final[tuple[type[System], ...]] = (
    SqliteTrigram,
    PostgresTrigram,
    MiniSearch,
    Orama,
    Sonic,
    TantivyRaw,
    OpenSearchAsYouType,
    OpenSearchCompletion,
)
