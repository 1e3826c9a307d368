# Two commands on a bare Debian machine: `make demo` and `make test`. Each does all of its own set-up. While you work on
# ctk, `make check` anywhere.

PYTHON ?= python3
VENV := .venv
CTK := $(VENV)/bin/ctk

.PHONY: demo demo-undo check test soak bench docs lint clean

# Build an image, submit a job to a practice Slurm, show its log.
demo:
	@machine/setup demo
	@$(MAKE) --no-print-directory $(VENV)/runs
	@machine/demo $(CTK)

# Take back what `make demo` and `make test` changed on this machine (Debian's packages stay).
demo-undo:
	@machine/undo

# Lint, types and the unit tests, in a minute: without root, Apptainer, Slurm or network, once $(VENV) is there.
check:
	@$(MAKE) --no-print-directory lint
	$(VENV)/bin/pytest --quiet --numprocesses 2 --dist worksteal -m "not (real or programs or network)"

# All tests, those on the real Apptainer and the real Slurm included: two files at a time.
test:
	@machine/setup test
	@$(MAKE) --no-print-directory $(VENV)/tests lint
	$(VENV)/bin/pytest --numprocesses 2 --dist loadfile --durations 25 --durations-min 10

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
	@$(VENV)/bin/pip install --quiet --editable .
	@touch $@

$(VENV)/tests: $(VENV)/runs
	@$(VENV)/bin/pip install --quiet 'pip>=25.1' # the first that reads [dependency-groups]; Debian 12 has 23.0
	@$(VENV)/bin/pip install --quiet --editable '.[sbom]' --group test
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
