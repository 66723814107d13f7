# `make demo` tells the story, `make test` checks everything. Each installs what it needs into .venv.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help install develop demo needs test test-lowest quick lint types docs dist try-dist try-iceberg benchmarks pins clean

help:
	@echo "make demo        the whole story in a minute, on real flights"
	@echo "make test        lint, types, tests, examples of README and docs"
	@echo "make test-lowest the tests against the lowest versions that pyproject.toml allows"
	@echo "make quick       lint, types and the fast tests; make quick AREA=ledger for one area"
	@echo "make docs        the documentation as a site in site/, built offline"
	@echo "make dist        a wheel and a source distribution in dist/"
	@echo "make try-dist    install both in clean environments, bare and with every extra"
	@echo "make try-iceberg the tests of Iceberg tables in Spark, with an Iceberg of their own"
	@echo "make benchmarks  speed, as ratios measured side by side"
	@echo "make pins        renew the hashed requirements (needs uv)"

# A stamp is newer than its pins exactly when the environment follows them. Using afresh needs less than testing it.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
.venv/installed: requirements/pip.txt requirements/use.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "afresh needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11")'
	@echo "Installing into .venv (a minute or two, once) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements/pip.txt
	@$(PIP) --require-hashes -r requirements/use.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/developed: .venv/installed requirements/dev.txt
	@echo "Installing what tests and docs need (some minutes, once) ..."
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

install: .venv/installed

develop: .venv/developed

demo: install
	@$(BIN)/afresh demo

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: develop
	$(BIN)/mypy

# A browser for the tests of pages: the one that is there, or one that is brought.
needs: develop
	@$(BIN)/python tools/needs.py

# Tests of services wait now and then, so a third worker may help on two cores: make test WORKERS=3
WORKERS ?= 2
test: needs lint types
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# Needs Python 3.11: the lowest versions have no wheels for later ones.
.venv-lowest/installed: requirements/lowest.txt pyproject.toml
	@$(PYTHON) -m venv .venv-lowest
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/pip.txt
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lowest.txt
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

test-lowest: .venv-lowest/installed
	@.venv-lowest/bin/python tools/needs.py
	.venv-lowest/bin/pytest -n $(WORKERS) --dist worksteal

# Everything but servers, Spark, kills, the lab, docs and thorough fuzzing (tests/thorough.txt lists them),
# with a tenth of the examples of Hypothesis. It takes about a sixth of the time of `make test`.
quick: lint types
	AFRESH_EXAMPLES=10 $(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not thorough" tests/$(AREA)

# Every warning is an error: broken links and anchors, pages that are not in the navigation, names that do not exist.
docs: develop
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site is in site/. Read it with: $(BIN)/python -m http.server --directory site --bind 127.0.0.1"

dist: develop
	@rm -rf dist
	@$(BIN)/hatchling build

# On every Python that is named: make try-dist PYTHONS="python3.11 python3.12 python3.13"
PYTHONS ?= $(PYTHON)
try-dist: dist
	@$(BIN)/python tools/try_dist.py $(foreach python,$(PYTHONS),--python $(python))

# Tables of Iceberg in Spark, with a real Iceberg in an environment of its own (800 MB).
try-iceberg: develop
	@$(BIN)/python tools/try_iceberg.py

benchmarks: develop
	$(BIN)/python -m benchmarks

PINS := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade
EVERYTHING := --extra all --extra spark --group dev pyproject.toml

pins:
	echo pip | $(PINS) - --output-file requirements/pip.txt
	$(PINS) $(EVERYTHING) --output-file requirements/dev.txt
	$(PINS) --extra all --group build pyproject.toml --constraint requirements/dev.txt --output-file requirements/use.txt
	$(PINS) $(EVERYTHING) --resolution lowest-direct --output-file requirements/lowest.txt

clean:
	rm -rf .venv .venv-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis site dist
