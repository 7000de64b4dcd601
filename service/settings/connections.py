"""How many connections a process holds open by default."""

from typing import Final

MOST_CONNECTIONS: Final = 10_000
# Of one address (IPv6: of one /64).
MOST_OF_AN_ADDRESS: Final = 1_000
