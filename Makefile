# Needs Python 3.11 or newer, make and git. Every target makes .venv and installs by itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
JAX := .venv/.installed-jax
CLUSTER := .venv/.installed-cluster

REPORTS := quickstart base-grid curves dense softmax value gpt2-small phases budget variants

.PHONY: quickstart test test-slow test-range check style types contracts reports bench clean

quickstart: $(READY)  ## find the first thresholds and write the report
	$(BIN)/rgr run quickstart

test: export PYTHONDONTWRITEBYTECODE = # an environment that forbids bytecode would have both processes compile every test
test: $(READY)  ## the fast tests
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder

test-slow: $(READY) $(CLUSTER)  ## the tests that take minutes
	$(BIN)/pytest -m "slow and not gpu"

test-range: $(READY)  ## the wheel on each Ray of the range, in environments of their own (ENV=newest for one; 30 min)
	$(BIN)/python -m tests.version_range $(ENV)

check: $(READY)  ## style, types, import contracts, side by side
	$(MAKE) -j2 types style contracts

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

reports: $(READY)  ## run ten shipped studies and write their reports, into results/ (two hours on two cores)
	for study in $(REPORTS); do $(BIN)/rgr run $$study || exit; done

bench: $(JAX)  ## training steps per second of every engine; cost of the search and its errors
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/search_cost.py
	$(BIN)/python benchmarks/search_statistics.py

clean:  ## remove what the other targets made, except results/
	rm -rf .venv .range build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find rgr_dist search analysis tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install -c constraints.txt -e ".[dev]"
	touch $@

$(JAX): $(READY)
	$(BIN)/pip install -c constraints.txt -e ".[jax]"
	touch $@

$(CLUSTER): $(READY)
	$(BIN)/pip install -c constraints.txt -e ".[cluster]"
	touch $@
