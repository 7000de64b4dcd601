"""Runs the command line: `python -m shop_directory`."""

from shop_directory.command_line import main

main()
