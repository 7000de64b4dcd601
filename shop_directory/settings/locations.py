"""Settings of the search engine, for both sides; credentials are never in a `repr`, a URL or a log line."""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from shop_directory.settings.reading import CommaSeparated, EnvironmentSettings, variable

_MAX_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Credentials of a client, and the certificates that it trusts.

    Without a user no credentials are sent; without `ca_file` (PEM) the authorities of the machine are trusted. `verify`
    says whether certificates and host names of nodes are verified.
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
        """The TLS context for https:// nodes; OSError if the file of authorities can't be read or has none."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


OPEN_ACCESS: Final = ClusterAccess()


def _urls(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
            raise ValueError("not a node's URL")
        # URLs appear in logs and in the list of processes, so they must hold no credentials.
        if "@" in url or parts.query or parts.fragment:
            raise ValueError("more than a node's URL")
    return urls


class LocationSettings(EnvironmentSettings):
    """The engine that stores generations, and how it is reached."""

    engine: Literal["embedded", "opensearch"] = Field("embedded", title="The engine that stores generations.")
    data_dir: Path = Field(
        Path("var/index"),
        title="The embedded engine's index directory.",
        description="the directory that the indexer writes",
    )
    opensearch_urls: Annotated[CommaSeparated, AfterValidator(_urls)] = Field(
        ("http://127.0.0.1:9200",),
        title="The nodes of the cluster; a node that fails is not used for a while.",
        min_length=1,
        description="the nodes' http:// or https:// URLs without user or password, separated by commas",
    )
    opensearch_user: str | None = Field(
        None,
        title="The user of the cluster, a different one for each side. Without one, requests have no credentials.",
        pattern=r"^[^:\x00-\x1f\x7f]+$",
        max_length=_MAX_NAME,
        description="a user's name of up to 256 characters, without a colon",
    )
    opensearch_password: SecretStr | None = Field(
        None, title="The user's password.", description="the password of the user"
    )
    opensearch_ca_file: Path | None = Field(
        None,
        title="The authorities that are trusted for https:// nodes; without it, those of the machine.",
        description="a file of certificates (PEM) that can be read",
    )
    opensearch_verify: bool = Field(
        True, title="Whether certificates and host names of https:// nodes are verified. `false` is for trials only."
    )
    index_prefix: str = Field(
        "shop-directory",
        title="The prefix of the names of all indices.",
        pattern=r"^[a-z0-9][a-z0-9-]{0,60}$",
        description="lower-case letters, digits and hyphens, up to 61",
    )

    @property
    def cluster_access(self) -> ClusterAccess:
        """The credentials and TLS settings of the cluster."""
        password = None if self.opensearch_password is None else self.opensearch_password.get_secret_value()
        return ClusterAccess(self.opensearch_user, password, self.opensearch_ca_file, self.opensearch_verify)

    def contradictions(self) -> Iterator[str]:
        """A user without a password, or a file of authorities that can't be read."""
        yield from super().contradictions()
        if (self.opensearch_user is None) != (self.opensearch_password is None):
            yield f"{variable('opensearch_user')} and {variable('opensearch_password')} go together: set both or none."
        if self.opensearch_ca_file is not None:
            try:
                self.cluster_access.tls()
            except OSError:
                described = type(self).model_fields["opensearch_ca_file"].description
                yield f"{variable('opensearch_ca_file')} is wrong: it must be {described}."

    def cautions(self) -> Iterator[str]:
        """Settings that let others read or change the traffic."""
        yield from super().cautions()
        if self.engine != "opensearch":
            return
        secured = [url.startswith("https://") for url in self.opensearch_urls]
        if any(secured) and not self.opensearch_verify:
            yield (
                f"{variable('opensearch_verify')} is false: anyone between this machine and the cluster can read and "
                "change all data. Use this for trials only."
            )
        if self.opensearch_user is not None and not all(secured):
            yield (
                f"{variable('opensearch_urls')} has an http:// URL: the password of {variable('opensearch_user')} "
                "goes over the network as plain text."
            )
