# Everything from a fresh clone: Python 3.11 or newer, pip and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs_ready
SITE := docs/_build docs/auto_examples docs/api/generated docs/api/backreferences docs/api/_commands.rst

.PHONY: demo test lint format docs dist clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

demo: $(READY)  ## the main job, on generated data
	$(BIN)/fado demo --out demo

test: $(READY) lint  ## linters, type checker, tests and doctests
	$(BIN)/python -m pytest -n 2

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
	rm -rf $(VENV) demo dist build $(SITE)
