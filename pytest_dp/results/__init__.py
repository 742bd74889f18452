"""Results of audits: plain data, which every room above may look at."""
