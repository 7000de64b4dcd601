"""What only the real engines and the real files show."""
