"""Credentials and TLS of an OpenSearch cluster, the same for both sides; never in a `repr`, a URL or a log line."""

import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Credentials of a client, and the certificates that it trusts.

    Attributes:
        user: the user name; None sends no credentials.
        password: the user's password.
        ca_file: certificates (PEM) of the trusted authorities; None trusts those of the machine.
        verify: whether certificates and host names of nodes are verified.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    verify: bool = True

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        if self.user is None:
            return {}
        # UTF-8 on both sides, as their client libraries use different encodings.
        credentials = b64encode(f"{self.user}:{self.password or ''}".encode())
        return {"authorization": f"Basic {credentials.decode()}"}

    def tls(self) -> ssl.SSLContext:
        """The TLS context for https:// nodes.

        Raises:
            OSError: the file of authorities can't be read or has no certificate.
        """
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


OPEN_ACCESS: Final = ClusterAccess()
