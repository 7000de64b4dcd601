"""The prototype of an embedded engine of bitmaps (decision 37): its files, its searches, and a comparison."""
