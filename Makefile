# `make demo` and `make test` do all the set-up; the environment lives in .venv and is made once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test unit lint docs browser slow bench coverage mutants oldest release-check clean

demo: .venv/demo
	$(BIN)/countinggrids demo

test: lint browser unit

unit: .venv/test
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile

slow: .venv/test
	$(BIN)/python -m pytest -m slow

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/docstrings.py
	$(BIN)/codespell

# The site, in docs/_build/html: runs the gallery, and takes warnings for errors.
docs: .venv/docs
	mkdir -p docs/_generated/extra
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html

# The explorer is tested in a real browser: Debian's, brought here where packages may be installed.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update -qq \
	       && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } \
	  || echo "no browser here, its tests will be skipped: apt-get install chromium brings one"

bench: .venv/test
	$(BIN)/python benchmarks run

# Branch coverage of src; the lines that no test reaches are listed.
coverage: .venv/test
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile \
	  --cov=countinggrids --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=90

# Mutants of core: operators, comparisons and numbers changed one at a time. Takes hours.
mutants: .venv/test
	$(BIN)/python tools/mutation_test.py

# The oldest dependencies that pyproject.toml allows, in an environment of their own.
oldest:
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) tools/oldest_dependencies.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c .venv-oldest/constraints.txt --editable '.[all]' pytest pytest-xdist hypothesis pandas hmmlearn
	.venv-oldest/bin/python -m pytest -m "not slow" -n auto --dist loadfile

release-check: .venv/bin/python
	$(PIP) build twine
	$(BIN)/python tools/release_check.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml .venv/bin/python
	$(PIP) --editable '.[explore,plot]'
	touch $@

.venv/test: pyproject.toml .venv/bin/python
	$(PIP) --editable '.[test]'
	touch $@ .venv/demo

.venv/docs: pyproject.toml .venv/bin/python
	$(PIP) --editable '.[docs]'
	touch $@ .venv/demo

clean:
	rm -rf .venv .venv-oldest demo results dist
	rm -rf docs/_build docs/_generated docs/gallery docs/reference/api docs/reference/commands.md docs/sg_execution_times.rst
