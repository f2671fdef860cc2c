# Each target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A file of pinned dependencies with hashes, as .ci/lock.txt; by default the newest are installed.
LOCK ?=

.PHONY: demo check test test-integrations test-kernels test-oldest test-newest reproduce lock licences torture bench docs release-check clean

demo: $(VENV)/.core
	$(BIN)/varcal demo

# Lint, format and types.
check: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# PYTEST_ARGS adds options, as in: make test PYTEST_ARGS='-m "not slow"'
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term-missing:skip-covered --cov-fail-under=95 $(PYTEST_ARGS)

# MLflow, skore, evaluate and boosters, in an environment of their own: they are heavy.
test-integrations:
	$(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet -e '.[mlflow,skore,evaluate]' lightgbm xgboost pytest
	$(VENV)-integrations/bin/python -m pip install --quiet torch==2.13.0 || echo 'PyTorch could not be installed: its test is skipped'
	$(VENV)-integrations/bin/python -m pytest --confcutdir=tests/integrations tests/integrations

# The figures as other processors round them: kernels of OpenBLAS, and numpy without wide registers.
KERNELS := Haswell Prescott Sandybridge
test-kernels: $(VENV)/.dev
	for kernel in $(KERNELS); do \
	  OPENBLAS_CORETYPE=$$kernel NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR" \
	  $(BIN)/python -m pytest -n 2 \
	    tests/docs tests/golden tests/report/test_audit_report.py \
	    tests/test_architecture.py $(PYTEST_ARGS) || exit 1; \
	done

# The same tests with the oldest and the newest dependencies, in environments of their own.
test-oldest test-newest:
	$(PYTHON) tools/versions.py test $(@:test-%=%) -m "not slow" $(PYTEST_ARGS)

# The paper's figures, theorems and pictures, in build/reproduction: reproduction/README.md
reproduce: $(VENV)/.dev
	$(BIN)/python -m reproduction

# Pins the dependencies of the CI; needs uv.
lock:
	$(PYTHON) tools/versions.py bounds
	$(PYTHON) tools/versions.py lock

# Writes docs/licences.md from what is installed.
licences: $(VENV)/.dev
	$(BIN)/python tools/licences.py

# Kills, full disks, forged files, fuzzing and load: torture/README.md
torture: $(VENV)/.dev
	$(BIN)/python -m torture

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

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@ $(VENV)/.core

$(VENV)/.dev: $(BIN)/python pyproject.toml $(LOCK)
ifdef LOCK
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
else
	$(BIN)/python -m pip install --quiet -e '.[dev]'
endif
	touch $@ $(VENV)/.core $(VENV)/.docs

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest $(VENV)-integrations build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
