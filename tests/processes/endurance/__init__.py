"""What has to hold however long, however often and however badly timed: kills, swaps under load, lost indices."""
