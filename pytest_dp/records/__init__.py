"""What outlasts a run: claims on record, evidence of earlier runs, and the code both are about."""
