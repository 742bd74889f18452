"""What audits find: plain data, which every room above may look at."""
