"""Starts a real Redis as a process on loopback.

It has the same port and folder for its whole life, and it ends when we do.
"""

import re
import socket
import subprocess
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.real.process import ProcessError, Server, ServerProcess, Startable, ending_with_input, free_ports

START_BOUND_S: Final = 20.0
_ANSWER_BOUND_S: Final = 2.0
_LOOPBACK: Final = "127.0.0.1"
MASTER_NAME: Final = "shops"

_NOTICED_AFTER_MS: Final = 600
# A master waits five seconds otherwise for more replicas to begin with.
_QUICK_SYNC: Final = ("--repl-diskless-sync-delay", "0")
_AGREED_BOUND_S: Final = 20.0
_MASTER_OFFSET: Final = re.compile(r"^master_repl_offset:(\d+)", re.MULTILINE)
_REPLICA_OFFSET: Final = re.compile(r"^slave\d+:.*\boffset=(\d+)", re.MULTILINE)


def redis_process(title: str, command: Sequence[str], folder: Path) -> ServerProcess:
    """A process of Redis, not started yet, that ends when its standard input does."""
    return ServerProcess(title, ending_with_input(command), folder / "redis.log")


class RedisServer(Server):
    """One Redis; as a context it is started, answers, and is stopped at the end."""

    def __init__(self, program: str, folder: Path, *, appendonly: bool = False, options: Sequence[str] = ()) -> None:
        """Chooses a port and stores the command; nothing runs yet.

        With `appendonly` its data outlives a restart; else it lives in memory alone. `options` are more of its command
        line, such as `--maxmemory 10mb`, a word each.
        """
        (self.port,) = free_ports(1)
        self.url = f"redis://{_LOOPBACK}:{self.port}/0"
        self.folder = folder
        stated = {
            "--bind": _LOOPBACK,
            "--port": str(self.port),
            "--dir": str(folder),
            "--save": "",
            "--appendonly": "yes" if appendonly else "no",
        }
        words = [word for option in stated.items() for word in option]
        self.process = redis_process(f"Redis at {self.url}", [program, *words, *options], folder)

    def _begin(self) -> None:
        self.process.launch()
        self.process.wait_for(self.answers, "answering", START_BOUND_S)

    def answers(self) -> bool:
        try:
            with (
                socket.create_connection((_LOOPBACK, self.port), timeout=_ANSWER_BOUND_S) as connection,
                connection.makefile("rb") as replies,
            ):
                connection.sendall(b"PING\r\nINFO server\r\nQUIT\r\n")
                return replies.readline() == b"+PONG\r\n" and b"process_id:%d\r\n" % self.process.pid in replies
        except OSError:
            return False


def redis_cli(port: int, *command: str) -> str:
    """What redis-cli prints; an empty text without an answer."""
    done = subprocess.run(
        ["redis-cli", "-h", _LOOPBACK, "-p", str(port), *command],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.stdout


def wait_until(server: RedisServer, command: Sequence[str], sign: str) -> None:
    what = f"answering {sign} when asked {' '.join(command)}"
    server.process.wait_for(lambda: sign in redis_cli(server.port, *command), what, _AGREED_BOUND_S)


def wait_until_replicated(master: RedisServer) -> None:
    """Waits until a replica has reported to its master that it has all that was written until now.

    `WAIT` does not serve: it waits for what its own connection wrote, and one of redis-cli has written nothing. A
    replica that just became one gets nothing until it has first reported its offset, up to a second later.
    """

    def offsets(kind: re.Pattern[str]) -> list[int]:
        return [int(found) for found in kind.findall(redis_cli(master.port, "INFO", "replication"))]

    (written,) = offsets(_MASTER_OFFSET)
    master.process.wait_for(lambda: max(offsets(_REPLICA_OFFSET), default=-1) >= written, "replicated", _AGREED_BOUND_S)


class SentinelServer(RedisServer):
    def __init__(self, program: str, folder: Path, master: RedisServer, quorum: int) -> None:
        """Writes its configuration, which it rewrites; nothing runs yet."""
        super().__init__(program, folder)
        folder.mkdir(parents=True)
        lines = [
            f"port {self.port}",
            f"bind {_LOOPBACK}",
            f"dir {folder}",
            f"sentinel monitor {MASTER_NAME} {_LOOPBACK} {master.port} {quorum}",
            f"sentinel down-after-milliseconds {MASTER_NAME} {_NOTICED_AFTER_MS}",
            f"sentinel failover-timeout {MASTER_NAME} 3000",
        ]
        configuration = folder / "sentinel.conf"
        configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [program, str(configuration), "--sentinel"]
        self.process = redis_process(f"the sentinel at port {self.port}", command, folder)


class _Group(Startable):
    servers: tuple[RedisServer, ...]

    def _begin(self) -> None:
        for server in self.servers:
            server.start()
        try:
            self._agree()
        except ProcessError as error:
            logs = [server.process.describe("is one of the group") for server in self.servers]
            raise ProcessError("\n".join((str(error), *logs))) from None

    @abstractmethod
    def _agree(self) -> None:
        """Waits until the servers, which all run, know each other."""

    def stop(self) -> None:
        for server in reversed(self.servers):
            server.stop()


class SentinelsOfRedis(_Group):
    """A master, a replica that follows it, and three sentinels; as a context they run, and know each other."""

    def __init__(self, program: str, folder: Path) -> None:
        """Chooses ports; nothing runs yet."""
        self.master = RedisServer(program, folder / "master", appendonly=True, options=_QUICK_SYNC)
        following = ("--replicaof", f"{_LOOPBACK} {self.master.port}", *_QUICK_SYNC)
        self.replica = RedisServer(program, folder / "replica", appendonly=True, options=following)
        for server in (self.master, self.replica):
            server.folder.mkdir(parents=True)
        self.sentinels = tuple(SentinelServer(program, folder / f"sentinel-{n}", self.master, 2) for n in range(3))
        self.servers = (self.master, self.replica, *self.sentinels)
        self.addresses = tuple(f"{_LOOPBACK}:{sentinel.port}" for sentinel in self.sentinels)

    def _agree(self) -> None:
        wait_until(self.master, ("INFO", "replication"), "state=online")
        for sentinel in self.sentinels:
            wait_until(sentinel, ("SENTINEL", "MASTER", MASTER_NAME), "num-other-sentinels\n2")
            wait_until(sentinel, ("SENTINEL", "MASTER", MASTER_NAME), "num-slaves\n1")


class ClusterOfRedis(_Group):
    """Three masters that share the slots, each with a replica or without; as a context they run, and agree."""

    def __init__(self, program: str, folder: Path, *, replicas: int = 0) -> None:
        """Chooses ports; nothing runs yet."""
        count = 3 * (1 + replicas)
        self._replicas = replicas
        self._program = program
        self.servers = tuple(self._node(folder / f"node-{n}", bus) for n, bus in enumerate(free_ports(count)))
        self.addresses = tuple(f"{_LOOPBACK}:{node.port}" for node in self.servers)

    def master_of(self, key: str) -> RedisServer:
        slot = int(redis_cli(self.servers[0].port, "CLUSTER", "KEYSLOT", key))
        for line in redis_cli(self.servers[0].port, "CLUSTER", "NODES").splitlines():
            address, flags, ranges = line.split()[1], line.split()[2], line.split()[8:]
            spans = [tuple(map(int, (one if "-" in one else f"{one}-{one}").split("-"))) for one in ranges]
            if "master" in flags and any(first <= slot <= last for first, last in spans):
                port = int(address.split("@")[0].rpartition(":")[2])
                return next(node for node in self.servers if node.port == port)
        raise ProcessError(f"no server owns slot {slot}")

    def _agree(self) -> None:
        made = ["--cluster", "create", *self.addresses, "--cluster-replicas", str(self._replicas), "--cluster-yes"]
        redis_cli(self.servers[0].port, *made)
        for node in self.servers:
            wait_until(node, ("CLUSTER", "INFO"), "cluster_state:ok")
            follows = redis_cli(node.port, "ROLE").startswith("slave")
            if self._replicas:
                sign = "master_link_status:up" if follows else "state=online"
                wait_until(node, ("INFO", "replication"), sign)

    def _node(self, folder: Path, bus: int) -> RedisServer:
        folder.mkdir(parents=True)
        stated = ("--cluster-enabled", "yes", "--cluster-port", str(bus))
        quick = ("--cluster-node-timeout", str(_NOTICED_AFTER_MS), *_QUICK_SYNC)
        return RedisServer(self._program, folder, appendonly=True, options=(*stated, *quick))
