"""The indexer's settings, from the environment (SHOP_DIRECTORY_...); a command's options come before them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class IndexerSettings(BaseSettings):
    """Where generations are written.

    Attributes:
        engine: `embedded` (a directory) or `opensearch` (a cluster).
        data_dir: the embedded engine's index directory.
        opensearch_urls: the cluster's nodes, separated by commas.
        index_prefix: what all index names begin with.
        opensearch_shards: primary shards of each index.
    """

    model_config = SettingsConfigDict(env_prefix="SHOP_DIRECTORY_", frozen=True, extra="ignore")

    engine: Literal["embedded", "opensearch"] = "embedded"
    data_dir: Path = Path("var/index")
    opensearch_urls: str = "http://127.0.0.1:9200"
    index_prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")] = "shop-directory"
    opensearch_shards: Annotated[int, Field(ge=1, le=64)] = 1
