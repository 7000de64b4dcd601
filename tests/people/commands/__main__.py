"""Prints docs/commands.md: `make commands` writes it again."""

from tests.people.commands.page import commands_page

if __name__ == "__main__":
    print(commands_page(), end="")
