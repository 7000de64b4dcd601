"""What key presses are answered from alongside the embedded index: files, machine code, a life with a generation."""
