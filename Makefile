# On a bare Debian machine: `make demo` and `make test`. Each does its own set-up. While you work on ctk, run
# `make check` on any machine.

PYTHON ?= python3
VENV := .venv
CTK := $(VENV)/bin/ctk
# An absolute path, for programs that tests start in other directories.
COVERAGE := $(CURDIR)/.coverage

# Errors only: no notices about a new pip, root or PATH.
INSTALL := $(VENV)/bin/pip install -qq --disable-pip-version-check --root-user-action ignore

.PHONY: demo demo-undo check test soak bench docs lint clean

# Build an image, submit a job to a practice Slurm, show its log.
demo:
	@machine/setup demo
	@$(MAKE) --no-print-directory $(VENV)/runs
	@machine/demo $(CTK)

# Revert what `make demo` and `make test` changed on this machine (Debian's packages are kept).
demo-undo:
	@machine/undo

# Lint, types and the quick unit tests. Needs no root, Apptainer, Slurm or network once $(VENV) exists. Property
# tests try fewer examples than in `make test`.
check:
	@$(MAKE) --no-print-directory lint
	$(VENV)/bin/pytest --quiet --numprocesses logical --dist worksteal --hypothesis-profile check \
	    -m "not (real or programs or index or slow)"

# All tests, including those on the real Apptainer and Slurm. Three files at a time: a third of them wait for Slurm.
# Ends with the branch coverage of toolkit/, which must not fall below the limit in pyproject.toml. Programs that the
# tests in tests/real/ start are not measured.
test:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests lint
	@rm -rf $(COVERAGE) && mkdir -m 1777 -p $(COVERAGE)
	COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage run -m pytest --numprocesses 3 --dist loadfile \
	    --no-loadscope-reorder --durations 25 --durations-min 10
	@COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage combine --quiet
	COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage report

# Long tests with large counts: fuzzing, kills, fault injection. Writes benchmarks/SOAK.md.
soak:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests
	$(VENV)/bin/python -m tests.soak

# Compare ctk with its peers, in one run. Writes benchmarks/RESULTS.md.
bench:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests
	$(VENV)/bin/python -m benchmarks.run

# Build the documentation site in build/site, offline; a warning is an error.
docs: $(VENV)/tests
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/site
	@echo "The site is in build/site/index.html"

lint: $(VENV)/tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The virtual environment: with the dependencies of ctk, then with those of its tests.
$(VENV)/runs: pyproject.toml
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	@echo "ctk: installing ctk and what it needs into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/tests: $(VENV)/runs
	@echo "ctk: installing what its tests need into $(VENV) ..."
	@$(INSTALL) 'pip>=25.1' # the first that reads [dependency-groups]; Debian 12 has 23.0
	@$(INSTALL) --editable . --group test
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage dist build
