"""The indexer's commands: `shop-directory index ...`.

Exit codes: 0 done, 1 the catalogue, its changes or the state are not usable, 2 wrong usage, 3 the engine failed,
4 another job is running, 5 the new generation may not be published, 6 index and source differ. With every code but 0
and 6 the live generation stays as it was.
"""

import typer

from indexer.commands.build import build_command
from indexer.commands.follow import follow_command
from indexer.commands.generations import prune_command, rollback_command, status_command
from indexer.commands.shops import hide_command, show_command
from indexer.commands.verify import verify_command

index = typer.Typer(help="Build, follow and repair the search indices.", no_args_is_help=True)


index.command("build")(build_command)
index.command("follow")(follow_command)
index.command("status")(status_command)
index.command("hide")(hide_command)
index.command("show")(show_command)
index.command("rollback")(rollback_command)
index.command("prune")(prune_command)
index.command("verify")(verify_command)


if __name__ == "__main__":
    index()
