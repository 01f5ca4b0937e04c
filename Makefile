# Everything from a fresh clone: Python 3.11 or newer, pip and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs_ready
SITE := docs/_build docs/auto_examples docs/api/generated docs/api/backreferences docs/api/_commands.rst

# The lowest versions that pyproject.toml allows; some have no wheels for Python 3.13.
OLDEST := .venv-oldest
OLDEST_PYTHON ?= $(shell command -v python3.11 || echo $(PYTHON))
SMOKE := README.md tests/test_compat.py tests/test_oldest.py tests/tabular/test_table.py \
	tests/tabular/test_from_outside.py tests/tabular/test_files.py tests/metrics/test_evaluate.py \
	tests/engine/test_lightgbm.py tests/engine/test_skops.py \
	tests/models/test_saved.py tests/valuation/entropy/test_valuators.py tests/valuation/large/test_value_files.py \
	tests/valuation/test_saved.py tests/interventions/test_reweighing.py tests/interventions/test_large.py \
	tests/aim/test_estimator.py tests/aim/test_trade_off.py tests/experiment/test_results.py tests/reporting tests/cli/test_value.py

.PHONY: demo test test-slow test-oldest smoke-oldest lint format docs dist clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

demo: $(READY)  ## the main job, on generated data
	$(BIN)/fado demo --out demo

test: $(READY) lint  ## linters, type checker, tests and doctests in under five minutes
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)  ## the other tests: browsers, clusters, kills, processes of their own, whole searches
	$(BIN)/python -m pytest -n 2 -m slow

$(OLDEST)/.ready: pyproject.toml tests/oldest.txt
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[all]" --group test --constraint tests/oldest.txt
	touch $@

test-oldest: $(OLDEST)/.ready  ## tests and doctests on the lowest versions
	$(OLDEST)/bin/python -m pytest -n 2

smoke-oldest: $(OLDEST)/.ready  ## those of them that tell most in two minutes
	$(OLDEST)/bin/python -m pytest -n 2 $(SMOKE)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

docs: $(DOCS_READY)  ## the site, in docs/_build/html: a warning is an error, and what was built is looked at
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	SITE_IS_BUILT=1 $(BIN)/python -m pytest -q tests/site

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dist: $(READY)  ## the wheel and the source archive, built, checked and tried in an empty environment
	rm -rf dist
	$(BIN)/python -m pip install --quiet --group dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist

clean:
	rm -rf $(VENV) $(OLDEST) demo dist build $(SITE)
