# Each target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo check test bench docs release-check clean

demo: $(VENV)/.core
	$(BIN)/varcal demo

# Lint, format and types.
check: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# PYTEST_ARGS adds options, as in: make test PYTEST_ARGS='-m "not slow"'
test: check
	$(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term-missing:skip-covered --cov-fail-under=95 $(PYTEST_ARGS)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench_vece.py

# The documentation site, in build/site. It needs neither a server nor a network to be read.
docs: $(VENV)/.docs
	$(BIN)/python tools/site/assemble.py
	$(BIN)/zensical build --strict -f build/mkdocs.yml
	@echo "open build/site/index.html"

# The checklist of a release. RELEASE_ARGS=--quick leaves out what takes long.
release-check: $(VENV)/.dev
	$(BIN)/python tools/release_check.py $(RELEASE_ARGS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@ $(VENV)/.core

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@ $(VENV)/.core $(VENV)/.docs

clean:
	rm -rf $(VENV) build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
