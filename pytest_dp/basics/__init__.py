"""Small things that all rooms use: errors, objects as text, clocks, files, what code can reach."""
