"""nginx and Caddy before the service, each with its file of `one-server/`; only ports and certificates are others."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from tests.support.real.process import Server, ServerProcess, ending_with_input, free_ports
from tests.support.real.secured import Authority
from tests.support.real.sources import REPOSITORY
from tests.support.served import Reply

FOLDER: Final = REPOSITORY / "one-server"
NAME: Final = "shops.example"
LOOPBACK: Final = "127.0.0.1"
SERVICE: Final = "127.0.0.1:8080"
_START_BOUND_S: Final = 20.0
_BOUND_S: Final = 60.0

# What the configuration of a whole nginx has around the file; and of a whole Caddy, whose own authority signs for it.
_NGINX: Final = """daemon off;
pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site;
}}
"""
_CADDY: Final = """{{
	admin off
	http_port {http}
	https_port {https}
	default_bind 127.0.0.1
	local_certs
	skip_install_trust
	storage file_system {folder}/storage
}}
import {folder}/site
"""


class Proxy(Server):
    """A proxy that listens on two ports of loopback; `authority` is the certificate that signed its own."""

    def __init__(self, kind: str, program: str, folder: Path, service: int) -> None:
        self.http, self.https = free_ports(2)
        ports = {"folder": folder, "http": self.http, "https": self.https}
        site = (FOLDER / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[kind]).read_text(encoding="utf-8")
        site = _replaced(site, SERVICE, f"{LOOPBACK}:{service}")
        if kind == "nginx":
            authority = Authority(folder)
            certificate = authority.issue(NAME)
            self.authority = authority.file
            site = re.sub(r"\n    listen \[::\]:.*", "", site)
            site = _replaced(site, "listen 80;", f"listen {LOOPBACK}:{self.http};")
            site = _replaced(site, "listen 443 ", f"listen {LOOPBACK}:{self.https} ")
            site = _replaced(site, f"/etc/letsencrypt/live/{NAME}/fullchain.pem", str(certificate.file))
            site = _replaced(site, f"/etc/letsencrypt/live/{NAME}/privkey.pem", str(certificate.key_file))
            whole = _NGINX.format(**ports)
            command = [program, "-p", str(folder), "-c", str(folder / "whole"), "-e", "stderr"]
        else:
            self.authority = folder / "storage" / "pki" / "authorities" / "local" / "root.crt"
            whole = _CADDY.format(**ports)
            command = [
                "env",
                f"HOME={folder}",
                program,
                "run",
                "--adapter",
                "caddyfile",
                "--config",
                str(folder / "whole"),
            ]
        (folder / "site").write_text(site, encoding="utf-8")
        (folder / "whole").write_text(whole, encoding="utf-8")
        self.process = ServerProcess(kind, ending_with_input(command), folder / "proxy.log")

    def _begin(self) -> None:
        self.process.launch()
        self.process.wait_for(self._answers, "answering", _START_BOUND_S)

    def _answers(self) -> bool:
        try:
            with self._connected(LOOPBACK):
                return True
        except OSError:
            return False

    def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        caller: str = LOOPBACK,
    ) -> Reply:
        """Ask over TLS, from an address of loopback."""
        with self._connected(caller) as connection:
            connection.request(method, path, body, {"content-type": "application/json", **(headers or {})})
            return _reply(connection)

    @contextmanager
    def _connected(self, caller: str) -> Iterator[HTTPConnection]:
        trusting = ssl.create_default_context(cafile=self.authority)
        plain = socket.create_connection((LOOPBACK, self.https), timeout=_BOUND_S, source_address=(caller, 0))
        with plain, trusting.wrap_socket(plain, server_hostname=NAME) as secured:
            connection = HTTPConnection(NAME)
            connection.sock = secured
            yield connection


def ask_plain(port: int, path: str) -> Reply:
    """Ask without TLS."""
    connection = HTTPConnection(LOOPBACK, port, timeout=_BOUND_S)
    try:
        connection.request("GET", path, headers={"host": NAME})
        return _reply(connection)
    finally:
        connection.close()


def _reply(connection: HTTPConnection) -> Reply:
    response = connection.getresponse()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)
