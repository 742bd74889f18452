#!/bin/sh
# Audit the example (green), then a copy of it with one regression applied (red).
# Usage: demo.sh PYTHON [NUMBER OF THE REGRESSION]. Succeeds if the first is green and the second red.
set -eu
python=$1
cd "$(dirname "$0")"
set -- regressions/"${2:-01}"*.patch
patch=$PWD/$1
test -f "$patch" || { echo "No such regression: $patch" >&2; exit 2; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM

heading() { printf '\n######## %s\n\n' "$*"; }

heading "1. A clinic's statistics: unit tests, and one audit for each claim. All should pass."
"$python" -m pytest -n auto

heading "2. Somebody opens a pull request."
cat "$patch"
cp -R . "$copy/example_project"
cd "$copy/example_project"
GIT_CEILING_DIRECTORIES=$copy git apply "$patch"

heading "3. The same tests with that change. The unit tests see nothing; the audit should fail."
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY # a failure that is wanted is no annotation in CI
status=0
"$python" -m pytest -n auto || status=$?

if test "$status" -ne 1; then
    heading "The regression was not caught (pytest ended with status $status)."
    exit 1
fi
heading "The change was caught: \"$(sed -n 's/^Subject: //p' "$patch")\" breaks a privacy claim."
echo "More like it: example_project/regressions/README.md, then make demo REGRESSION=04"
