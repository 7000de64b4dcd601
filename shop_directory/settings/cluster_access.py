"""How an OpenSearch cluster lets its callers in: user, password, and whose certificates are trusted.

Both sides say it in the same way. Nothing of it is in a printed form, in a URL or in a log line.
"""

import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """What a client shows and what it trusts.

    Attributes:
        user: whom it asks as; None asks as nobody.
        password: the user's.
        ca_file: certificates (PEM) of the authorities that are trusted; None trusts those of the machine.
        verify: whether a node's certificate and its host name have to be right.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    verify: bool = True

    def headers(self) -> dict[str, str]:
        """The headers that every request carries."""
        if self.user is None:
            return {}
        # As UTF-8 on both sides: their client libraries would each choose another encoding.
        credentials = b64encode(f"{self.user}:{self.password or ''}".encode())
        return {"authorization": f"Basic {credentials.decode()}"}

    def tls(self) -> ssl.SSLContext:
        """What https:// nodes are asked with.

        Raises:
            OSError: the file of authorities can't be read or holds no certificate.
        """
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


OPEN_ACCESS: Final = ClusterAccess()
