"""What callers could tell a hidden shop by, channel after channel: there is none (V2)."""
