"""Ten more, written after the others were looked at, and not looked at since."""

CLAIMS = {}
