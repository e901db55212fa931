# Everything a contributor runs. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
DOCS_STAMP := $(VENV)/installed-docs
DEMO_STAMP := $(VENV)/installed-demo
# Two for each of two cores: many tests wait for a server or a page. More only take memory.
WORKERS ?= 4
OWN := $(BIN)/pytest -q --dist loadfile -m 'not nats_server' -o cache_dir=build/own-cache
REFERENCE := $(BIN)/pytest -q -n 2 --dist loadfile -m nats_server -o cache_dir=build/reference-cache
LOUD_MATURIN := PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop
MATURIN := $(LOUD_MATURIN) -q --skip-install

.DEFAULT_GOAL := help
.PHONY: help setup tools browser engine engine-release format check test test-rust test-python test-compatibility test-long test-pauses protos reference bench demo docs wheel

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: tools $(STAMP) ## create the environment, build the engine, install editable; does nothing when up to date

tools:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or run 'make PYTHON=/path/to/python3'" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: run 'make PYTHON=/path/to/a/newer/python3'" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "make: cargo is missing: install Rust 1.85 or newer, see https://rustup.rs, or your system's packages 'cargo' and 'rustc'; then open a new shell" >&2; exit 1; }

# Without one the tests of the dashboard are skipped, and say so at the end; it is never a reason to fail.
browser: ## install Debian's Chromium without windows for the tests of the dashboard, if this user may
	@if command -v chromium-headless-shell >/dev/null; then :; \
	elif test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y --no-install-recommends chromium-headless-shell; then :; \
	elif command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y --no-install-recommends chromium; then :; \
	else echo "make: no Chromium: install your system's package 'chromium' to test the dashboard, or its tests will be skipped" >&2; fi

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev,docs,spark]'
	@$(MAKE) --no-print-directory browser
	touch $(STAMP) $(DOCS_STAMP)

engine: setup ## rebuild the engine in place after a Rust edit
	$(MATURIN)

engine-release: setup ## the same, optimised: what benchmarks use
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

# Both halves at once: the one waits for disks, the other for servers and pages. What fails beside others on a busy
# machine is run once more, one at a time, and named: a test that needs that wants mending.
test: engine ## all tests of this server, Rust and Python
	cargo test -q --no-run
	@$(MAKE) --no-print-directory -j2 test-rust test-python

test-rust: ## the half of `make test` in Rust
	@mkdir -p build; cargo test -q --no-fail-fast > build/test-rust.log 2>&1 || { cat build/test-rust.log; \
		echo "make: running the Rust tests once more, one at a time" >&2; cargo test -q -- --test-threads=1; }

test-python: ## the half of `make test` in Python
	@$(OWN) -n $(WORKERS) || { echo "make: running once more, alone, what failed" >&2; $(OWN) -n 0 --last-failed; }

# One retry: nats-server itself records and removes some things a little late, and a busy machine makes it later.
test-compatibility: engine ## the same test bodies against nats-server, and the comparisons of both
	$(REFERENCE) || { echo "make: running once more what failed on the side of nats-server" >&2; $(REFERENCE) --last-failed; }

test-long: engine ## the tests that take long: Spark with killed drivers and workers, natscli, nsc, packages; some twenty minutes
	JETLAKE_LONG=1 $(BIN)/pytest -q tests/spark tests/examples tests/cli tests/clients tests/governor tests/submission tests/docs tests/packaging tests/compatibility/test_leafnode_cluster.py -m slow

test-pauses: engine ## the tests in Python while random processes are paused: finds what depends on timing
	$(BIN)/python -m tests.process_pauses -- $(OWN) -n $(WORKERS)

protos: setup ## generate the Python modules of the .proto files
	$(BIN)/python -m jetlake.devices.protos.regenerate

reference: setup ## generate the pages of the reference: commands, configuration keys, error codes, Python
	$(BIN)/python -m tests.docs.reference --write
	$(BIN)/python -m tests.docs.layers --write

bench: engine-release ## measure this server and nats-server in one run
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.consumers
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.devices
	$(BIN)/python -m benchmarks.kv
	$(BIN)/python -m benchmarks.small_data

# The engine is compiled once, optimised, and cargo says how far it is; no debug build is needed for it.
demo: tools $(DEMO_STAMP) ## build the engine once and show the whole system at work; writes build/demo/index.html
	$(LOUD_MATURIN) --release --skip-install
	$(BIN)/jetlake demo

# An environment of `make setup` has everything already. The extras come second: pip finds them by what is installed.
$(DEMO_STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/maturin || $(BIN)/pip install -q --disable-pip-version-check 'maturin>=1.9.4,<2'
	@test $(STAMP) -nt pyproject.toml || $(LOUD_MATURIN) --release
	$(BIN)/pip install -q --disable-pip-version-check 'jetlake[dashboard,devices,spark,sql]'
	touch $(DEMO_STAMP)

docs: setup $(DOCS_STAMP) ## build the documentation into build/docs; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

$(DOCS_STAMP): pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check -e '.[docs]'
	touch $(DOCS_STAMP)

# The tag of the wheel says the oldest C library it runs with; maturin refuses to write one that is not true.
wheel: setup ## build a wheel for Python 3.11 and newer into build/wheels; it installs without Rust
	$(BIN)/maturin build --release --strip --compatibility pypi --out build/wheels
