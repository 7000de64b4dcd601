"""What key presses are answered from beside the embedded index: files, machine code, a life with a generation."""
