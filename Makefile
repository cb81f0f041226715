# Each target installs what it needs: a fresh clone needs Python 3.11 or newer, make and git.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Parallel test processes for two cores; each test has a server or a namespace of its own.
# Tests on the embedded server are idle a third of the time; a real one uses both cores.
JOBS ?= 4
REAL_JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup up down check test conformance e2e scenarios bench torture tables stages chart release lock format clean

help:
	@echo "make up           start Lamina in the background: the embedded server, a hub with five clusters; stop it with make down"
	@echo "make test         check formatting, lint, types and import contracts, and run the tests"
	@echo "make conformance  run the conformance and scenario tests on a real kube-apiserver"
	@echo "make e2e          run Kubernetes' end-to-end suite on the embedded server"
	@echo "make scenarios    list the acceptance scenarios that pass on both servers, and those that do not, with the reason"
	@echo "make bench        compare Lamina with kube-apiserver and the original controllers"
	@echo "make torture      run the long tests: kill -9 under load, crash exploration, random programs"

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: set PYTHON=python3.11")'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements.lock)"
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@# Compiled here, so that the first start is fast.
	@$(BIN)/python -m compileall -q src .venv/lib || true
	@touch $(READY)

up: $(READY)
	@$(BIN)/lamina up --detach --clusters 5

down: $(READY)
	@$(BIN)/lamina down

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One failure fails the run, except for tests that start processes: tests/second-tries.txt lists those that run a
# second time, alone, and the run prints which of them needed it.
PYTEST = $(BIN)/python -m tests.bed pytest --jobs $(2) -- $(1)

test: check
	$(call PYTEST,--ignore=tests/torture --ignore=tests/conformance/kubectl --ignore=tests/conformance/workloads --ignore=tests/conformance/deploy,$(JOBS))

conformance: $(READY)
	$(BIN)/python -m tests.bed build real kubectl helm kro
	export LAMINA_TEST_SERVER=real LAMINA_TEST_KUBECTL=0.35; $(call PYTEST,tests/conformance tests/client tests/scenarios --ignore=tests/conformance/cel,$(REAL_JOBS))
	export LAMINA_TEST_SERVER=real LAMINA_TEST_KUBECTL=0.34; $(call PYTEST,tests/conformance/checks,$(REAL_JOBS))
	@# On the embedded server: kubectl is another process, so these tests depend on the load of the machine.
	$(call PYTEST,tests/conformance/kubectl tests/conformance/workloads,$(REAL_JOBS))

e2e: $(READY)
	$(BIN)/python -m tests.bed e2e

scenarios: $(READY)
	$(BIN)/python -m tests.bed build real kubectl
	$(BIN)/python -m tests.bed scenarios

# All parts take most of an hour; one part: make bench PARTS=fleet OPTIONS="--only embedded --sizes 100"
PARTS ?= server clusters paper cel rules metacontroller fleet objectset resourcegraph beside resourcegraph_beside
OPTIONS ?=

bench: $(READY)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --group bench
	@set -e; for part in $(PARTS); do $(BIN)/python -m bench.$$part $(OPTIONS); done

torture: $(READY)
	$(BIN)/pytest tests/torture
	$(BIN)/python -m tests.conformance.model --examples 500

# Generates the tables of the built-in kinds from public packages.
tables: $(READY)
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.structs

# Generates the built-in stages as JSON, which every start reads, from their YAML source.
stages: $(READY)
	$(BIN)/python -m tools.stages

# Writes the values, the schema, the rules, the alerts and the dashboard of the Helm chart from the source.
chart: $(READY)
	$(BIN)/python -m tools.chart

# Cuts CHANGELOG.md from changes/ and sets the version: make release VERSION=0.2.0 SUMMARY="What it is about."
release: $(READY)
	@$(BIN)/python -m tools.release "$(VERSION)" --summary "$(SUMMARY)"

# The lock has packages, versions and digests, and no index, which differs between machines.
lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade --output-file requirements.lock
	@# What runs without tests and tools: the container is built from it.
	$(BIN)/uv pip compile pyproject.toml --constraint requirements.lock --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --quiet --output-file requirements-runtime.lock

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
