# One command each; `make help` lists them. Everything is installed into .venv, from the exact versions in requirements/.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
ARGS ?=

# Bytecode is kept, whatever the machine says: tests start hundreds of processes, and each would compile all our sources.
export PYTHONDONTWRITEBYTECODE :=

# Written after an installation: a repeated call is quick, and changed pins install again.
VENV_MADE := $(VENV)/.made
BASE_READY := $(VENV)/.base-ready
DEV_READY := $(VENV)/.dev-ready

# A newer pip, kept out of the environment that it describes.
LOCK_VENV := build/lock-venv

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test test-all test-newest check-types check-tests torture reproduce compare demo bench bench-peers docs docs-serve docs-figures gallery notebooks dist wheel format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(BASE_READY) ## install doral and what it needs into .venv (.venv/bin/doral), and compile it for this machine
	@$(if $(filter setup,$(MAKECMDGOALS)),$(BIN)/python scripts/prepare_code.py,:)
	@$(if $(filter setup,$(MAKECMDGOALS)),printf '%s\n' "doral is in $(BIN). What to type next:" \
		"  $(BIN)/doral init my.toml      write a problem of your own to start from" \
		"  $(BIN)/doral simulate my.toml  let policies play it" \
		"  make demo                         watch a live campaign in a browser" \
		"  $(BIN)/doral --help            see everything else",:)

test: $(DEV_READY) ## style, types, imports between modules, and the tests of the core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --jobs=2 check-types check-tests  # side by side: types take a minute of one core

test-all: export MARKED =
test-all: test ## the same, with notebooks, site, clusters, release, browsers and whole grids

check-types:
	$(BIN)/mypy
	$(BIN)/lint-imports

MARKED ?= not slow
# Twice as many as there are cores: a third of the time of the tests is waiting, for servers, browsers, clocks, disks and
# killed processes, and for one who compiles.
WORKERS ?= $(shell $(BIN)/python -c 'import os; print(min(2 * (os.cpu_count() or 1), 8))')

check-tests:
	@sh scripts/ensure_chromium.sh
	$(BIN)/python scripts/prepare_code.py  # before the workers, each of which would wait for it
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 25 --durations-min 5 -m "$(MARKED)" $(ARGS)

# Newer than the pins, and kept out of the environment that these describe.
NEWEST := build/newest-venv
NEWEST_TOOLS := pytest hypothesis duckdb narwhals pandas pyarrow scikit-learn
BORDERS := tests/logs tests/simulation/test_external.py tests/simulation/test_external_classifiers.py \
	tests/live/test_external.py tests/service/test_client.py

test-newest: ## frames, logs, models from outside and the client against the newest releases; before every release
	@$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade --upgrade-strategy eager \
		-e ".[serve]" $(NEWEST_TOOLS)
	$(NEWEST)/bin/python -m pytest $(BORDERS) $(ARGS)

torture: $(DEV_READY) ## hundreds of killed writers, engines in turns, damage, wild clocks (extra words: ARGS="...")
	DORAL_TORTURE=300 $(BIN)/python -m pytest -n 2 tests/live/test_kills.py tests/live/test_state_machine.py \
		tests/live/test_two_engines.py tests/live/test_killed_migrations.py tests/live/test_wild_clocks.py \
		tests/live/test_damaged_logs.py tests/engine/test_engine_equals_twin.py $(ARGS)

reproduce: setup ## the experiments of the paper, figures and report (extra words: ARGS="...")
	$(BIN)/doral experiment reproduce $(ARGS)

compare: setup ## every policy on every scenario, and what doral-otf is made of (extra words: ARGS="...")
	$(BIN)/doral experiment compare $(ARGS)

demo: setup ## a live page that moves by itself: made-up people come to made-up campaigns (extra words: ARGS="...")
	$(BIN)/doral serve --demo $(ARGS)

bench: $(DEV_READY) ## how fast simulator, campaigns and service are on this machine, and whether they survive kills
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-peers: $(BASE_READY) ## DORAL beside other libraries on the same tapes, each in an environment of its own, into docs/benchmarks.md
	$(BIN)/python benchmarks/peers $(ARGS)

docs: $(DEV_READY) ## the documents as a site, into build/site; a broken link or an unknown name fails
	$(BIN)/python scripts/site build

docs-serve: $(DEV_READY) ## the same on http://127.0.0.1:8000, built again whenever a page is saved
	$(BIN)/python scripts/site serve

docs-figures: $(DEV_READY) ## draw the pictures of docs/concepts again
	$(BIN)/python docs/draw

gallery: $(BASE_READY) ## run the examples, and bring their pages and pictures up to date
	$(BIN)/python scripts/gallery.py $(ARGS)

notebooks: $(DEV_READY) ## run the notebooks of examples/ anew, from scripts/notebooks/
	$(BIN)/python scripts/make_notebooks.py

dist: $(DEV_READY) ## wheel and source archive into dist/, tried in an empty environment outside this folder
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/newcomer.py dist docs/start/*.md

wheel: $(BASE_READY) ## a wheel for this platform that carries machine code, into dist/
	PYTHONPATH=src $(BIN)/python scripts/prepare_code.py --wheel
	$(PIP) wheel --no-deps --wheel-dir dist . ; status=$$?; rm -rf src/doral/compiled/prepared; exit $$status

format: $(DEV_READY) ## rewrite the sources in the common style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## choose the newest versions that fit together and pin them in requirements/
	$(PYTHON) -m venv --clear $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip --quiet --quiet --disable-pip-version-check install --upgrade pip
	$(LOCK_VENV)/bin/python scripts/lock.py

clean: ## remove everything that was made here, .venv included
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV_MADE):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("doral needs Python 3.11 or newer, and \
	$(PYTHON) is %d.%d: name another one, as in  make setup PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(BASE_READY): $(VENV_MADE) requirements/base.txt pyproject.toml
	$(PIP) install --no-deps --requirement requirements/base.txt
	$(PIP) install --no-deps --editable .
	@touch $@

# In one go, and compiled when it is imported: most of what is for work on doral never is.
$(DEV_READY): $(VENV_MADE) requirements/base.txt requirements/dev.txt pyproject.toml
	$(PIP) install --no-deps --no-compile --requirement requirements/dev.txt
	$(PIP) install --no-deps --editable .
	@touch $(BASE_READY) $@
