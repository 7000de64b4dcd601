"""The page for people, in a real Chromium against the real service: what is typed, shown, said and never said."""
