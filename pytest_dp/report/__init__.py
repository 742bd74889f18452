"""Reports: pure functions from a result to a record, and from records to text."""
