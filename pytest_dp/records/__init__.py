"""Files that outlast a run: claims on record, and evidence of earlier runs, by identity of code."""
