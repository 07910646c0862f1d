# `make demo` and `make test` do all the set-up; the environment lives in .venv and is made once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint slow bench clean

demo: .venv/demo
	$(BIN)/countinggrids demo

test: .venv/test lint
	$(BIN)/python -m pytest -m "not slow"

slow: .venv/test
	$(BIN)/python -m pytest -m slow

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/test
	for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

.venv/test: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ .venv/demo

clean:
	rm -rf .venv demo results
