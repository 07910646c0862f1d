# `make demo` and `make test` do all the set-up; the environment lives in .venv and is made once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint browser slow bench clean

demo: .venv/demo
	$(BIN)/countinggrids demo

test: .venv/test lint browser
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile

slow: .venv/test
	$(BIN)/python -m pytest -m slow

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The explorer is tested in a real browser: Debian's, brought here where packages may be installed.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update -qq \
	       && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } \
	  || echo "no browser here, its tests will be skipped: apt-get install chromium brings one"

bench: .venv/test
	for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[explore,plot]'
	touch $@

.venv/test: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ .venv/demo

clean:
	rm -rf .venv demo results
