"""Functions with one planted bug each, at the line that says ``# planted: NAME``."""
