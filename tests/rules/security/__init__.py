"""What an attacker would try, and what the project's own watch over its packages and secrets does."""
