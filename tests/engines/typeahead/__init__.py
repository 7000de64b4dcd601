"""What suggest requests are answered from, alongside the embedded index: files, machine code, a generation's life."""
