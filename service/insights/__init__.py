"""What people look for and don't find: counts of queries by day, of which none is shown that few people asked."""
