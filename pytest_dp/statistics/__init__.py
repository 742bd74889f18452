"""Statistics only: what the counts of two samples prove about a claim."""
