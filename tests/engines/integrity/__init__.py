"""What damage to the files of a published generation does: never a wrong answer (E3)."""
