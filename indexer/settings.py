"""The indexer's settings, from the environment (SHOP_DIRECTORY_...); a command's options override them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from indexer.jobs.defaults import MOST_SHRINK
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import COMMA_SEPARATED

HostName = Annotated[str, Field(pattern=r"^(?:[a-z0-9_-]{1,63}\.)+[a-z0-9_-]{1,63}$")]


class IndexerSettings(LocationSettings):
    """Where generations are written, and from what."""

    opensearch_shards: int = Field(1, title="Primary shards of each index of documents.", ge=1, le=64)
    opensearch_replicas: Literal["auto"] | Annotated[int, Field(ge=0, le=20)] = Field(
        "auto",
        title="Replicas of each shard; `auto` is one replica where there is more than one data node.",
        description="auto or a whole number from 0 to 20",
    )
    state_dir: Path | None = Field(
        None,
        title="The indexer's private state; without it, alongside the embedded index, or `var/<prefix>.state`.",
        description="a directory that only the indexer reads",
    )
    typeahead_build_dir: Path | None = Field(
        None,
        title="Where the indexer builds the files of the typeahead that it writes to OpenSearch; without it, in "
        "the state directory.",
        description="a directory that only the indexer writes",
    )
    typeahead_readers: int = Field(
        1,
        title="Machines with services on OpenSearch; a publication gives each time to fetch the typeahead.",
        ge=0,
        le=10_000,
        description="a whole number from 0 (no wait) to 10000",
    )
    typeahead_rate_mb: float = Field(
        50.0,
        title="Mebibytes a second of the typeahead's files that OpenSearch can serve to all of them together.",
        gt=0,
        le=100_000,
        allow_inf_nan=False,
        description="a number over 0 and up to 100000",
    )
    sql_url: SecretStr | None = Field(
        None,
        title="The database of the catalogue, for --sql.",
        description="a database's URL in the form of SQLAlchemy",
    )
    sql_mapping: Path | None = Field(
        None, title="The mapping of the database's tables.", description="a file of table mappings"
    )
    most_shrink: float = Field(
        MOST_SHRINK,
        title="The share of the public shops that a build may lose without --allow-shrink.",
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="a share from 0 to 1",
    )
    logo_hosts: Annotated[tuple[HostName, ...], *COMMA_SEPARATED] = Field(
        (),
        title="Hosts besides a shop's own domain on which its `logo` may be; the next build applies them.",
        description="host names in lower case such as images.example, separated by commas",
    )

    @property
    def states(self) -> Path:
        """The directory of the states."""
        if self.state_dir is not None:
            return self.state_dir
        if self.engine == "embedded":
            return self.data_dir.with_name(f"{self.data_dir.name}.state")
        return Path("var") / f"{self.index_prefix}.state"

    @property
    def typeaheads(self) -> Path:
        """The directory of the local files of the typeaheads in OpenSearch."""
        return self.typeahead_build_dir or self.states / "typeahead"

    @property
    def replicas(self) -> int | None:
        """Replicas of each shard; None lets the number of nodes decide."""
        return None if self.opensearch_replicas == "auto" else self.opensearch_replicas
