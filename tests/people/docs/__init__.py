"""The pages of the project, held to what they say: every block runs, every command and every link exists."""
