"""Claims as they are kept in ``dp-claims.json``, and what became of them since."""
