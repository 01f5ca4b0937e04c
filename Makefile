# Everything from a fresh clone: Python 3.11 or newer, pip and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format dist clean

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
	rm -rf $(VENV) demo dist build
