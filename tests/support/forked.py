"""Starts the project's programs by forking a process that has imported them: 0.1 s in place of 2 s of imports.

The fork server has no threads and opens nothing. A program that it forks becomes a child of the test's process, with
the arguments, environment, working directory and descriptors that `subprocess` would give it, and runs its module as
`python -m` does. What reads its environment while it is imported, or needs an interpreter of its own, starts with
`subprocess`: several workers, whose metrics do so, is one.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO, cast

from tests.support import fork_client

REPOSITORY: Final = Path(__file__).parents[2]
# The packages whose modules can be started; `shop_directory` is what the command `shop-directory` runs.
PROGRAMS: Final = ("shop_directory", "service", "indexer", "tests")
_IMPORTED: Final = (
    "shop_directory.command_line",
    "shop_directory.conformance.commands",
    "shop_directory.conformance.run",
    "service.stdio",
    "service.server.process",
    "service.server.run",
    "service.mcp_server.endpoint",
    "service.observability.logs",
    "service.search.embedded.engine",
    "service.search.opensearch.engine",
    "service.search.typeahead.compiled",
    "service.auth.sqlite",
    "service.reports.sqlite",
    "service.commands.tokens",
    "service.commands.rechecks",
    "indexer.commands.catalogue",
    "indexer.commands.build",
    "indexer.commands.follow",
    "indexer.commands.generations",
    "indexer.catalogue.validation",
    "indexer.sinks.embedded.sink",
    "indexer.sinks.opensearch.sink",
    "indexer.reconcile.generation",
    "shop_directory.acceptance",
)
# An orphan is adopted by an ancestor that asks for it on Linux only.
_CAN_FORK: Final = sys.platform == "linux"
_BOUND_S: Final = 60.0
_MESSAGE_BYTES: Final = 256 * 1024
_MOST_DESCRIPTORS: Final = 16
# Above all descriptors that a program is given.
_SPARE: Final = 512
_PR_SET_CHILD_SUBREAPER: Final = 36


def is_forked(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a command is one of the programs, and needs nothing that only an interpreter of its own has."""
    return (
        _CAN_FORK
        and len(command) > 2
        and (command[0], command[1]) == (sys.executable, "-m")
        and command[2].partition(".")[0] in PROGRAMS
        and "--workers" not in command
        and "SHOP_DIRECTORY_WORKERS" not in environment
        and "LISTEN_FDS" not in environment
    )


def start(command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[Any]:  # noqa: ANN401 - as Popen takes them
    """Start a command, as `subprocess.Popen` does, by a fork where it is one of the programs."""
    environment = dict(os.environ if env is None else env)
    kind = _Forked if is_forked(command, environment) else subprocess.Popen
    return kind(command, env=environment, **options)


def run(
    command: Sequence[str],
    *,
    timeout: float,
    input: str | bytes | None = None,  # noqa: A002 - as subprocess names it
    check: bool = False,
    **options: Any,  # noqa: ANN401 - as Popen takes them
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end, as `subprocess.run` does with captured output."""
    if "stdin" not in options:
        options["stdin"] = subprocess.PIPE
    with start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class _Forked(subprocess.Popen[Any]):
    """A `Popen` whose child the fork server makes; only the private method that forks and executes is replaced."""

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:  # noqa: ANN401 - as the base class has it
        names = (
            "executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags", "shell",
            "p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite", "restore_signals", "gid", "gids",
            "uid", "umask", "start_new_session", "process_group",
        )  # fmt: skip
        options = dict(zip(names, given, strict=True))
        standard = [
            own if found == -1 else found
            for own, found in enumerate((options["p2cread"], options["c2pwrite"], options["errwrite"]))
        ]
        request = {
            "argv": list(args[2:]),
            "env": options["env"],
            "cwd": str(options["cwd"] or Path.cwd()),
            "passed": list(options["pass_fds"]),
            "group": os.getpgrp() if options["process_group"] == -1 else options["process_group"],
            "session": options["start_new_session"],
            "attended": False,
        }
        try:
            self.pid = _fork_child(request, [*standard, *options["pass_fds"]])
            self._child_created = True
        finally:
            self._close_pipe_fds(*(options[name] for name in names[9:15]))  # type: ignore[attr-defined]


def _fork_child(request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Fork a program as a child of this process; returns its pid."""
    prctl = ctypes.CDLL(None).prctl
    # Its parent ends at once, and its nearest subreaper, an ancestor of the fork server, becomes its parent.
    path = str(_server().socket)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        with fork_client.asked(path, request, descriptors) as channel:
            pid = int(channel.recv(fork_client.NUMBER_BYTES))
            channel.recv(1)  # nothing: its parent has ended
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    return pid


class _ForkServer:
    """The process that has imported everything, and the folder with its socket; it ends when this process does."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self.socket = Path(self._folder.name) / "socket"
        self.program = Path(self._folder.name) / "bin" / "shop-directory"
        self.program.parent.mkdir()
        client = [sys.executable, "-ISs", fork_client.__file__, str(self.socket)]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
        self.program.chmod(0o755)
        self._lifeline, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.support.forked", str(self.socket), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0
            )
        assert self._lifeline.recv(1), "the fork server did not start"
        atexit.register(self.close)

    def close(self) -> None:
        self._lifeline.close()
        self._process.wait(_BOUND_S)
        self._folder.cleanup()


_servers: Final[list[_ForkServer]] = []


def _server() -> _ForkServer:
    """The fork server of this process, started at first use."""
    if not _servers:
        _servers.append(_ForkServer())
    return _servers[0]


def program() -> Path:
    """An executable that does what `shop-directory` does, for shells and libraries that start it themselves."""
    return _server().program if _CAN_FORK else Path(sys.executable).with_name("shop-directory")


def _serve(listener: socket.socket, lifeline: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each request until the lifeline closes; returns the request in each child, None in the server."""
    while lifeline not in select.select([listener, lifeline], [], [])[0]:
        channel, _ = listener.accept()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                """Forget those that waited for a program."""
        with channel:
            message, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
            if message and (request := _fork(channel, message, descriptors)) is not None:
                return request, descriptors
            for descriptor in descriptors:
                os.close(descriptor)
    return None


def _fork(channel: socket.socket, message: bytes, descriptors: Sequence[int]) -> dict[str, Any] | None:
    """Fork by a process between, which sends the pid; returns the request in the program, None in the server.

    The process between ends at once, so that an ancestor adopts the program; or, if the program is attended, when the
    program has ended, after sending its exit code.
    """
    request: dict[str, Any] = json.loads(message)
    between = os.fork()
    if between == 0:
        program = os.fork()
        if program == 0:
            return request
        channel.send(str(program).encode())
        if request["attended"]:
            for descriptor in descriptors:
                os.close(descriptor)
            channel.send(str(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])).encode())
        os._exit(0)
    if not request["attended"]:
        os.waitpid(between, 0)
    return None


def _become(request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Take on the descriptors, signals, environment, working directory and arguments of a program."""
    if request["session"]:
        os.setsid()
    else:
        with suppress(PermissionError):  # a group of another session: an own session is not asked for
            os.setpgid(0, request["group"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    numbers = [0, 1, 2, *request["passed"]]
    held = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _SPARE) for descriptor in descriptors]
    for number, descriptor in zip(numbers, held, strict=True):
        os.dup2(descriptor, number, inheritable=True)
    last = 3
    for number in sorted(request["passed"]):
        os.closerange(last, number)
        last = number + 1
    os.closerange(last, 2 * _SPARE)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    sys.path[0] = request["cwd"]
    if str(REPOSITORY) not in sys.path:
        sys.path.insert(1, str(REPOSITORY))
    sys.argv = request["argv"]


def _stream(descriptor: int, mode: str) -> TextIO:
    errors = "backslashreplace" if descriptor == 2 else "strict"
    buffering = 1 if descriptor == 2 or os.isatty(descriptor) else -1
    return cast("TextIO", open(descriptor, mode, buffering, encoding="utf-8", errors=errors, closefd=False))


def _main(path: str, lifeline: socket.socket) -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    # What exists now is never scanned, and so never copied, in a child.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        lifeline.send(b".")
        forked = _serve(listener, lifeline)
        if forked is None:
            return
        request, descriptors = forked
        _become(request, descriptors)
        # Their descriptors are closed already, or another's.
        listener.detach()
        lifeline.detach()
    runpy.run_module(request["argv"][0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
