"""The indexer's commands: `shop-directory index ...`.

Exit codes: 0 done, 1 the catalogue, its changes or the state are not usable, 2 wrong usage, 3 the engine failed,
4 another job is running, 5 the new generation may not be published, 6 index and source differ. With every code but 0
and 6 the live generation stays as it was.
"""

import typer

from indexer.commands import build, follow, generations

index = typer.Typer(help="Build, follow and repair the search indices.", no_args_is_help=True)


index.command("build")(build.build_command)
index.command("follow")(follow.follow_command)
index.command("status")(generations.status_command)
index.command("hide")(generations.hide_command)
index.command("show")(generations.show_command)
index.command("rollback")(generations.rollback_command)
index.command("prune")(generations.prune_command)
index.command("verify")(generations.verify_command)


if __name__ == "__main__":
    index()
