"""Answers typeahead by Sonic's ids, over persistent connections, and looks the shops up in memory.

An answer takes two lines: that the query is pending, and the event that brings its ids.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson

from bench.typeahead.peers.sonic import PORT_FILE, SHOPS_FILE, quoted
from bench.typeahead.peers.transport import Answer, Asked, Row, main

_CONNECTIONS: Final = 8
# Of a market: so many are asked for to have enough after the others are dropped.
_OF_MARKET: Final = 100
_Shops = dict[str, tuple[Row, Sequence[str]]]
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[Answer]:
    """Read the shops and connect to Sonic."""
    shops: _Shops = {}
    with (folder / SHOPS_FILE).open("rb") as file:
        for line in file:
            row, countries = orjson.loads(line)
            shops[row[0]] = (tuple(row), countries)
    port = int((folder / PORT_FILE).read_text(encoding="ascii"))
    free: asyncio.LifoQueue[_Connection] = asyncio.LifoQueue()
    connections = [await _connected(port) for _ in range(_CONNECTIONS)]
    for connection in connections:
        free.put_nowait(connection)
    popular = list(shops.values())

    async def answer(asked: Asked) -> Sequence[Row]:
        typed = quoted(asked.q)
        found = popular
        if typed:
            connection = await free.get()
            try:
                limit = asked.limit if asked.country is None else _OF_MARKET
                found = [shops[shop_id] for shop_id in await _query(connection, typed, limit)]
            finally:
                free.put_nowait(connection)
        return _of_market(found, asked)

    yield answer
    for _, writer in connections:
        writer.close()


def _of_market(found: Sequence[tuple[Row, Sequence[str]]], asked: Asked) -> list[Row]:
    rows: list[Row] = []
    for row, countries in found:
        if asked.country is None or not countries or asked.country in countries:
            rows.append(row)
            if len(rows) == asked.limit:
                break
    return rows


async def _query(connection: _Connection, typed: str, limit: int) -> list[str]:
    reader, writer = connection
    writer.write(f'QUERY shops all "{typed}" LIMIT({limit}) LANG(none)\n'.encode())
    pending = await reader.readline()
    if not pending.startswith(b"PENDING "):
        raise ConnectionError(f"Sonic refused a query: {pending!r}")
    event = await reader.readline()
    # EVENT QUERY <marker> <ids>
    return event.decode().split()[3:]


async def _connected(port: int) -> _Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    writer.write(b"START search\n")
    await reader.readline()
    return reader, writer


if __name__ == "__main__":
    main(opening)
