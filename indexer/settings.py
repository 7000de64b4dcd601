"""The indexer's settings, from the environment (SHOP_DIRECTORY_...); a command's options come before them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from indexer.build import MOST_SHRINK


class IndexerSettings(BaseSettings):
    """Where generations are written.

    Attributes:
        engine: `embedded` (a directory) or `opensearch` (a cluster).
        data_dir: the embedded engine's index directory.
        opensearch_urls: the cluster's nodes, separated by commas.
        index_prefix: what all index names begin with.
        opensearch_shards: primary shards of each index.
        state_dir: the private directory of states; by default beside the embedded index, or `var/<prefix>.state`.
        sql_url: the database of the catalogue, as SQLAlchemy writes it; it may hold a password.
        sql_mapping: the file that maps tables and columns.
        most_shrink: the share of the public shops that a build may lose without --allow-shrink (G2).
    """

    model_config = SettingsConfigDict(env_prefix="SHOP_DIRECTORY_", frozen=True, extra="ignore")

    engine: Literal["embedded", "opensearch"] = "embedded"
    data_dir: Path = Path("var/index")
    opensearch_urls: str = "http://127.0.0.1:9200"
    index_prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")] = "shop-directory"
    opensearch_shards: Annotated[int, Field(ge=1, le=64)] = 1
    state_dir: Path | None = None
    sql_url: SecretStr | None = None
    sql_mapping: Path | None = None
    most_shrink: Annotated[float, Field(ge=0, le=1)] = MOST_SHRINK

    @property
    def states(self) -> Path:
        """Where the states are."""
        if self.state_dir is not None:
            return self.state_dir
        if self.engine == "embedded":
            return self.data_dir.with_name(f"{self.data_dir.name}.state")
        return Path("var") / f"{self.index_prefix}.state"

    @property
    def urls(self) -> tuple[str, ...]:
        """The cluster's nodes."""
        return tuple(url.strip() for url in self.opensearch_urls.split(",") if url.strip())
