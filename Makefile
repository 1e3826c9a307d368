# Two commands on a bare Debian machine: `make demo` and `make test`. Each does all of its own set-up. While you work on
# ctk, `make check` anywhere.

PYTHON ?= python3
VENV := .venv
CTK := $(VENV)/bin/ctk
# Absolute, for programs that tests start elsewhere.
COVERAGE := $(CURDIR)/.coverage

# Its notices (a new version, work as root, PATH) are not for whoever runs make.
INSTALL := $(VENV)/bin/pip install --quiet --disable-pip-version-check --root-user-action ignore --no-warn-script-location

.PHONY: demo demo-undo check test soak bench docs lint clean

# Build an image, submit a job to a practice Slurm, show its log.
demo:
	@machine/setup demo
	@$(MAKE) --no-print-directory $(VENV)/runs
	@machine/demo $(CTK)

# Take back what `make demo` and `make test` changed on this machine (Debian's packages stay).
demo-undo:
	@machine/undo

# Lint, types and the unit tests, in a minute: without root, Apptainer, Slurm or network, once $(VENV) is there. Property
# tests try fewer examples than in `make test`.
check:
	@$(MAKE) --no-print-directory lint
	$(VENV)/bin/pytest --quiet --numprocesses 2 --dist worksteal --hypothesis-profile check \
	    -m "not (real or programs or index)"

# All tests, those on the real Apptainer and the real Slurm included. Three files at a time: a third of them wait for
# Slurm. Ends with the branch coverage of toolkit/, which may not fall under what pyproject.toml says.
test:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests lint
	@rm -rf $(COVERAGE) && mkdir -m 1777 -p $(COVERAGE)
	COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage run -m pytest --numprocesses 3 --dist loadfile \
	    --no-loadscope-reorder --durations 25 --durations-min 10
	@COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage combine --quiet
	COVERAGE_FILE=$(COVERAGE)/data $(VENV)/bin/coverage report

# The same with large counts: fuzzing, kills, fault injection. Writes benchmarks/SOAK.md.
soak:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests
	$(VENV)/bin/python -m tests.soak

# ctk beside its peers, in one run. Writes benchmarks/RESULTS.md.
bench:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests
	$(VENV)/bin/python -m benchmarks.run

# The pages as a site, in build/site. Reads nothing from the network; a warning is an error.
docs: $(VENV)/tests
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/site
	@echo "The site is in build/site/index.html"

lint: $(VENV)/tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The virtual environment: with what ctk needs, then with what its tests need too.
$(VENV)/runs: pyproject.toml
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	@echo "ctk: installing ctk and what it needs into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/tests: $(VENV)/runs
	@echo "ctk: installing what its tests need into $(VENV) ..."
	@$(INSTALL) 'pip>=25.1' # the first that reads [dependency-groups]; Debian 12 has 23.0
	@$(INSTALL) --editable '.[sbom]' --group test
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage dist build
