"""/mcp/oauth: the endpoint of /mcp for hosts that sign in by OAuth, as a protected resource (RFC 9728).

The MCP SDK's own parts do not serve: its middleware can't answer 503 while the issuer is away, and answers without
JSON-RPC; its models add a slash to an issuer that ends without one.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from service.auth.protocol import Issuer
from service.errors import ServiceError, TokenInvalidError
from service.http.messages import Endpoint, constant_endpoint, json_answer
from service.identity import TITLE

OAUTH_PATH: Final = "/mcp/oauth"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """The endpoint as its metadata describe it; `url` is the public one."""

    url: str
    issuer: Issuer

    @property
    def metadata_url(self) -> str:
        """The well-known URL of the metadata."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"

    @property
    def metadata_path(self) -> str:
        """The path of that URL."""
        return urlsplit(self.metadata_url).path

    def metadata_endpoint(self) -> Endpoint:
        """GET of the metadata: a constant answer."""
        document = {
            "resource": self.url,
            "authorization_servers": [self.issuer.url],
            "bearer_methods_supported": ["header"],
            "resource_name": TITLE,
        }
        scopes = tuple(self.issuer.scope_classes)
        return constant_endpoint(json_answer(document | ({"scopes_supported": scopes} if scopes else {})))

    def challenge(self, error: ServiceError) -> ServiceError:
        """A refusal of this endpoint, which leads to the issuer."""
        explained = type(error)(
            "This endpoint needs an access token of the authorization server that the metadata in the header "
            "www-authenticate name, for this resource. Send it as authorization: Bearer."
        )
        parameters = f'resource_metadata="{self.metadata_url}"'
        if isinstance(error, TokenInvalidError):
            parameters = f'error="invalid_token", {parameters}'
        explained.headers = ((b"www-authenticate", f"Bearer {parameters}".encode()),)
        return explained

    def mention(self, error: ServiceError) -> ServiceError:
        """A refusal of /mcp, which names this endpoint as well."""
        return type(error)(f"{error.detail} A host that signs in by OAuth connects to {self.url} instead.")
