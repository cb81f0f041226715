# Everything is set up by the targets themselves: a fresh clone needs Python 3.11 or newer, make and git.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# As many at a time as suits two cores; each test has a server or a namespace of its own.
# Most tests of the embedded server wait for somebody else half of the time; a real one keeps both processors busy.
JOBS ?= 3
REAL_JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup up down check test conformance e2e scenarios bench torture tables stages lock format clean

help:
	@echo "make up           run Lamina on its embedded server, a hub with five clusters, in the background; make down stops it"
	@echo "make test         formatting, linting, types, import contracts, tests"
	@echo "make conformance  the same conformance and scenario tests on a real kube-apiserver"
	@echo "make e2e          Kubernetes' own end-to-end suite on the embedded server"
	@echo "make scenarios    which acceptance scenarios pass on both servers, which are open and why"
	@echo "make bench        the embedded server beside kube-apiserver, as ratios"
	@echo "make torture      the long tests: kill -9 under load, again and again; programs nobody has played yet"

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: set PYTHON=python3.11")'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements.lock)"
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@# Compiled once: a start that compiles first is not quick.
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

# Many tests start processes, servers and kubectl, and on a busy machine one is late now and then: what fails is
# asked once more, alone, and what fails twice is wrong. So it is with the controllers of a real control plane.
TWICE = $(BIN)/pytest -n $(2) --dist worksteal $(1) || $(BIN)/pytest --last-failed --last-failed-no-failures none $(1)

test: check
	$(call TWICE,--ignore=tests/torture --ignore=tests/conformance/kubectl --ignore=tests/conformance/workloads,$(JOBS))

conformance: $(READY)
	$(BIN)/python -m tests.bed build real kubectl
	export LAMINA_TEST_SERVER=real LAMINA_TEST_KUBECTL=0.35; $(call TWICE,tests/conformance tests/client tests/scenarios --ignore=tests/conformance/cel,$(REAL_JOBS))
	export LAMINA_TEST_SERVER=real LAMINA_TEST_KUBECTL=0.34; $(call TWICE,tests/conformance/checks,$(REAL_JOBS))
	@# The embedded server, too: kubectl is another process, and what it finds depends on who had the cores meanwhile.
	$(call TWICE,tests/conformance/kubectl tests/conformance/workloads,$(REAL_JOBS))

e2e: $(READY)
	$(BIN)/python -m tests.bed e2e

scenarios: $(READY)
	$(BIN)/python -m tests.bed build real kubectl
	$(BIN)/python -m tests.bed scenarios

# All of it takes most of an hour; one part alone: make bench PARTS=fleet OPTIONS="--only embedded --sizes 100"
PARTS ?= server clusters paper cel rules metacontroller fleet beside
OPTIONS ?=

bench: $(READY)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --group bench
	@set -e; for part in $(PARTS); do $(BIN)/python -m bench.$$part $(OPTIONS); done

torture: $(READY)
	$(BIN)/pytest tests/torture
	$(BIN)/python -m tests.conformance.model --examples 500

# Regenerates the tables of the built-in kinds from public packages.
tables: $(READY)
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.structs

# Writes the usual stages as every start reads them, from the YAML that people change.
stages: $(READY)
	$(BIN)/python -m tools.stages

# The lock names packages, versions and digests, and no index: every machine has its own.
lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade --output-file requirements.lock

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
