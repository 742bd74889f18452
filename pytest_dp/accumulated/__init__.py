"""Evidence that outlives a run: which audits are the same, and where what they showed is kept."""
