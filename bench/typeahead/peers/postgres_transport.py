"""Answers typeahead by one prepared call of PostgreSQL's function, over persistent connections.

A request waits for a free connection; there are few, since everything runs on one core.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import psycopg

from bench.typeahead.peers.postgres import ADDRESS_FILE
from bench.typeahead.peers.transport import Answer, Asked, Row, main

_CONNECTIONS: Final = 8
_CALL: Final = "SELECT id, name, domain, category FROM suggest(%s, %s, %s)"
_TYPO_THRESHOLD: Final = "SET pg_trgm.word_similarity_threshold = 0.4"


@asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[Answer]:
    """Connect to the server at the address in the folder."""
    address = (folder / ADDRESS_FILE).read_text(encoding="ascii")
    free: asyncio.LifoQueue[psycopg.AsyncConnection[Row]] = asyncio.LifoQueue()
    async with AsyncExitStack() as stack:
        for _ in range(_CONNECTIONS):
            connected = await psycopg.AsyncConnection[Row].connect(address, autocommit=True, prepare_threshold=0)
            connection = await stack.enter_async_context(connected)
            await connection.execute(_TYPO_THRESHOLD)
            free.put_nowait(connection)

        async def answer(asked: Asked) -> Sequence[Row]:
            connection = await free.get()
            try:
                cursor = await connection.execute(_CALL, (asked.q, asked.country, asked.limit), binary=True)
                return await cursor.fetchall()
            finally:
                free.put_nowait(connection)

        yield answer


if __name__ == "__main__":
    main(opening)
