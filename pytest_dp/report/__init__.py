"""What a reader sees: pure functions from an `AuditResult` to text."""
