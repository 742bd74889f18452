"""What our clinic publishes about its patients, with differential privacy."""
