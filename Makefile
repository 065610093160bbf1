# Every target sets up what it needs: `make demo` and `make test` work on a fresh checkout.
# Targets with a `##` are listed by `make help`; the architecture tests hold that they all have one.

VENV   ?= .venv
# The interpreter to make the environment with. Empty: scripts/setup.sh finds one.
PYTHON ?=
# More arguments for pytest or a benchmark: make test ARGS="-k window"
ARGS   ?=
# The Python that `make test-python` tests; python$(VERSION) has to be on PATH, or PYTHON says where it is.
VERSION ?= 3.13
# Which query of Nexmark `make profile` runs.
QUERY  ?= q9
# How many faults `make chaos` injects, and how many seeds `make simulate` runs.
N      ?= 2000
# Which slow tests `make test-rotation` begins with, and how many seconds it has.
SEED   ?= $(shell date -u +%Y%m%d)
WITHIN ?= 1200

BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Written when set-up has succeeded; as old as the environment it describes. Running jobs needs Java and headrace
# itself; tests need databases, a browser and the developers' tools besides.
READY_RUN   := $(VENV)/.ready-run
READY       := $(VENV)/.ready
READY_BENCH := $(VENV)/.ready-bench
READY_DOCS  := $(VENV)/.ready-docs
CLASSES     := build/spark-classes.jsa

# Compiled modules are kept, whatever the environment says: tests and jobs start Python by the hundred.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@echo "usage: make TARGET [ARGS=\"...\"] [PYTHON=python3.12] [VERSION=3.13] [N=2000] [SEED=1] [WITHIN=1200] [QUERY=q9]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- set-up ---------------------------------------------------------------------------------------

.PHONY: setup
setup: $(READY) ## install everything for development: .venv, Java, test databases, a browser, Kafka
	@:

$(READY_RUN): pyproject.toml requirements.lock scripts/setup.sh
	@VENV="$(VENV)" PYTHON="$(PYTHON)" EXTRAS= sh scripts/setup.sh java venv packages
	@touch $@

$(READY): $(READY_RUN)
	@VENV="$(VENV)" EXTRAS=dev sh scripts/setup.sh postgres mariadb chromium packages kafka
	@touch $@

$(READY_BENCH): $(READY)
	@VENV="$(VENV)" EXTRAS=dev,bench sh scripts/setup.sh packages
	@touch $@

$(READY_DOCS): $(READY_RUN)
	@VENV="$(VENV)" EXTRAS=docs sh scripts/setup.sh packages
	@touch $@

.PHONY: upgrade
upgrade: $(READY) ## install the newest versions that pyproject.toml allows, instead of those in requirements.lock
	@VENV="$(VENV)" LOCK= PIP_UPGRADE=1 PIP_UPGRADE_STRATEGY=eager EXTRAS=dev,docs,bench sh scripts/setup.sh packages
	@touch $(READY_RUN) $(READY) $(READY_BENCH) $(READY_DOCS)

.PHONY: lock
lock: $(READY_BENCH) $(READY_DOCS) ## write the versions installed in .venv to requirements.lock
	@$(BIN)/python scripts/lock.py

# --- run ------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(READY_RUN) ## run the click-stream example and show where its web page is (ARGS=--keep keeps it up)
	@$(BIN)/headrace run $(filter --keep,$(ARGS)) examples/clickstream_sessions.py $(filter-out --keep,$(ARGS))

# --- test -----------------------------------------------------------------------------------------

# Made once: with it the Sparks of tests start in three quarters of the time. It takes one core; on the other, test
# modules are compiled, which both processes of `make test` would do otherwise.
$(CLASSES): $(READY) tests/class_archive.py
	@$(PYTEST) --collect-only -qq > /dev/null 2>&1 & $(BIN)/python -m tests.class_archive $@; made=$$?; wait; exit $$made

.PHONY: test
test: $(CLASSES) ## run all tests but the slow ones
	@$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" --durations=10 $(ARGS)

.PHONY: test-unit
test-unit: $(READY) ## run the tests that need no Spark
	@$(PYTEST) -m "not spark and not slow" $(ARGS)

# DataStream jobs, workers that die, and SQL with Python functions.
SOME_ON_SPARK := tests/spark/test_transformations.py tests/spark/test_faults.py tests/spark/test_sql_functions.py

.PHONY: test-python
test-python: ## run the tests that need no Spark, and some that do, on another Python (VERSION=3.13)
	@VENV=".venv-$(VERSION)" PYTHON="$(or $(PYTHON),python$(VERSION))" EXTRAS=dev sh scripts/setup.sh java venv packages
	@.venv-$(VERSION)/bin/python -m pytest -m "not spark and not slow" $(ARGS)
	@.venv-$(VERSION)/bin/python -m pytest $(SOME_ON_SPARK) $(ARGS)

.PHONY: test-slow
test-slow: $(READY) ## run the slow tests: long runs, kills, many seeds, new examples
	@$(PYTEST) -m "slow or hypothesis" --timeout=900 --durations=10 --hypothesis-profile="new examples" $(ARGS) \
		|| [ $$? -eq 5 ] # 5: none is marked slow

.PHONY: test-rotation
test-rotation: $(CLASSES) ## run the slow tests that fit into WITHIN seconds, in an order drawn from SEED
	@SURVEY_SHARE=0.04 CHAOS_FAULTS=300 $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m slow --timeout=600 --durations=25 \
		-p tests.rotation --rotation=$(SEED) --within=$(WITHIN) \
		--hypothesis-profile="new examples" --hypothesis-seed=$(SEED) $(ARGS)

.PHONY: chaos
chaos: $(READY) ## run jobs until N faults were injected (N=2000), then break real processes and hosts
	@CHAOS_FAULTS=$(N) $(PYTEST) -n 2 -m "chaos and slow" --timeout=7200 -rA tests/chaos/test_driver_faults.py tests/chaos/test_live_faults.py
	@$(PYTEST) -m "chaos and slow" --timeout=7200 --durations=10 -rA tests/chaos tests/hosts \
		--deselect tests/chaos/test_driver_faults.py --deselect tests/chaos/test_live_faults.py $(ARGS)

.PHONY: simulate
simulate: $(READY) ## simulate drivers, storage, executors and clocks with N seeds (N=10000)
	@SIMULATED_SEEDS=$(N) $(PYTEST) -n 2 -m slow --timeout=7200 -rA tests/simulation $(ARGS)

# An environment with the real PyFlink; FLINK_PYTHON names another interpreter that has it.
FLINK_ENV    := build/flink-env
FLINK_PYTHON ?= $(FLINK_ENV)/bin/python
# Benchmarks that compare with Flink ask for it when they need it (bench/flink.py).
export FLINK_PYTHON

$(FLINK_ENV)/bin/python: | $(READY_RUN)
	@$(BIN)/python -m venv $(FLINK_ENV)
	@$(FLINK_ENV)/bin/python -m pip install --quiet "setuptools<81" "apache-flink==2.3.*" \
		|| { rm -rf $(FLINK_ENV); exit 1; }

.PHONY: parity
parity: $(READY) $(FLINK_PYTHON) ## run Flink's Python examples with PyFlink and with headrace, and compare their output
	@$(BIN)/python -m tests.parity.run_examples --flink $(FLINK_PYTHON) $(ARGS)

# --- check ----------------------------------------------------------------------------------------

.PHONY: lint
lint: $(READY) ## check style, format, spelling and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(READY) ## repair what ruff can repair
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: type
type: $(READY) ## check the types
	$(BIN)/mypy

.PHONY: docs
docs: $(READY) ## write the generated reference pages again
	$(BIN)/python -m headrace.config.docs
	$(BIN)/python -m headrace.rest.docs
	$(BIN)/python -m headrace.cli.docs
	$(BIN)/python -m headrace.planner.docs
	$(BIN)/python -m tests.parity.public_names
	$(BIN)/python -m headrace.cli.error_docs

.PHONY: docs-site
docs-site: $(READY_DOCS) ## build the documentation as a web site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "headrace: the documentation is in build/site; make docs-serve shows it with search"

.PHONY: docs-serve
docs-serve: $(READY_DOCS) ## serve the documentation at http://127.0.0.1:8000 and rebuild it when a page changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve $(ARGS)

# --- measure --------------------------------------------------------------------------------------

.PHONY: bench
bench: $(READY_BENCH) ## measure headrace and compare with the last run
	$(BIN)/python -m bench.run $(ARGS)

.PHONY: bench-time
bench-time: $(READY_BENCH) ## measure windows and timers against the keyed running count
	$(BIN)/python -m bench.time_run $(ARGS)

.PHONY: bench-state
bench-state: $(READY_BENCH) ## measure a keyed running count on each state backend
	$(BIN)/python -m bench.state_run $(ARGS)

.PHONY: bench-recovery
bench-recovery: $(READY_BENCH) ## measure checkpoints, recovery and state beyond memory
	$(BIN)/python -m bench.recovery_run $(ARGS)

.PHONY: bench-kafka
bench-kafka: $(READY_BENCH) ## measure Kafka in, count, out against a bare loop and Spark's own source
	$(BIN)/python -m bench.kafka_run $(ARGS)

.PHONY: bench-files
bench-files: $(READY_BENCH) ## measure Parquet files read by a job and by Spark itself
	$(BIN)/python -m bench.files_run $(ARGS)

.PHONY: bench-peers
bench-peers: $(READY_BENCH) ## measure the same programs on the systems we compare with
	$(BIN)/python -m bench.peers $(ARGS)

.PHONY: bench-latency
bench-latency: $(READY_BENCH) ## measure event to output against PyFlink and transformWithStateInPandas
	$(BIN)/python -m bench.latency_run $(ARGS)

.PHONY: bench-live
bench-live: $(READY_BENCH) ## measure live mode against epochs: throughput with checkpoints, restarts
	$(BIN)/python -m bench.live_run $(ARGS)

.PHONY: bench-startup
bench-startup: $(READY_BENCH) $(FLINK_PYTHON) ## measure process start to first record and to the end, against PyFlink
	$(BIN)/python -m bench.startup_run --flink $(FLINK_PYTHON) $(ARGS)

.PHONY: bench-web
bench-web: $(READY_BENCH) ## measure what somebody who looks at the web page costs a job
	$(BIN)/python -m bench.web_polling $(ARGS)

.PHONY: bench-sql
bench-sql: $(READY_BENCH) ## measure queries against Flink SQL and Spark Structured Streaming
	$(BIN)/python -m bench.sql_run $(ARGS)

.PHONY: bench-nexmark
bench-nexmark: $(READY_BENCH) ## measure Nexmark's queries against Flink SQL and Structured Streaming
	$(BIN)/python -m bench.nexmark_run $(ARGS)

.PHONY: profile
profile: $(READY_BENCH) ## show where the time of a query of Nexmark goes, in Python and in Spark (QUERY=q9)
	$(BIN)/python -m bench.profile_run $(QUERY) $(ARGS)

.PHONY: bench-soak
bench-soak: $(READY_BENCH) ## run thousands of epochs and watch heap, disk and descriptors
	$(BIN)/python -m bench.soak $(ARGS)

.PHONY: bench-live-soak
bench-live-soak: $(READY_BENCH) ## run a live job for an hour and watch memory, threads and descriptors
	$(BIN)/python -m bench.live_soak $(ARGS)

.PHONY: bench-autoscaling
bench-autoscaling: $(READY_BENCH) ## raise and lower the load of a job tenfold and watch the autoscaler follow
	$(BIN)/python -m bench.autoscaling_run $(ARGS)

# --- clean ----------------------------------------------------------------------------------------

.PHONY: clean
clean: ## delete caches, builds and what local Spark runs left behind
	rm -rf build dist artifacts spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: distclean
distclean: clean ## clean, and delete the virtual environment
	rm -rf $(VENV)
