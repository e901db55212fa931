# Everything a contributor runs. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
DOCS_STAMP := $(VENV)/installed-docs
MATURIN := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop -q --skip-install

.DEFAULT_GOAL := help
.PHONY: help setup tools engine engine-release format check test test-long bench demo docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: tools $(STAMP) ## create the environment, build the engine, install editable; does nothing when up to date

tools:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or run 'make PYTHON=/path/to/python3'" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: run 'make PYTHON=/path/to/a/newer/python3'" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "make: cargo is missing: install Rust 1.85 or newer, see https://rustup.rs, or your system's packages 'cargo' and 'rustc'; then open a new shell" >&2; exit 1; }

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev,spark]'
	touch $(STAMP)

engine: setup ## rebuild the engine in place after a Rust edit
	$(MATURIN)

engine-release: setup ## the same, optimised: what benchmarks and the demo use
	$(MATURIN) --release

format: setup ## put Rust and Python into shape
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: engine ## what CI refuses: format, lint, types, stubs, style
	cargo fmt --check
	cargo clippy --workspace --all-targets -q -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src
	$(BIN)/python -m mypy.stubtest jetlake._engine
	$(BIN)/pytest -q tests/style

test: engine ## all tests, Rust then Python
	cargo test -q
	$(BIN)/pytest -q -n 2 --dist loadfile

test-long: engine ## the tests of Spark that kill drivers and workers, some twenty minutes
	JETLAKE_LONG=1 $(BIN)/pytest -q tests/spark tests/examples -m slow

bench: engine-release ## measure this server and nats-server in one run
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.consumers
	$(BIN)/python -m benchmarks.store

demo: engine-release ## show what the product can do; writes build/demo/index.html
	$(BIN)/python examples/demo.py

docs: setup $(DOCS_STAMP) ## build the documentation into build/docs; a broken link is an error
	$(BIN)/mkdocs build -q --strict

$(DOCS_STAMP): pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check -e '.[docs]'
	touch $(DOCS_STAMP)
