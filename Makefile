# Needs Python 3.11 or newer, make and git. Every target makes .venv and installs by itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
JAX := .venv/.installed-jax
DOCS := .venv/.installed-docs
CLUSTER := .venv/.installed-cluster
CLIENTS := .venv/.installed-clients

.PHONY: quickstart test test-slow test-range mutants check docs bench bench-search clean

quickstart: $(READY)  ## find the first thresholds and write the report
	$(BIN)/rgr run quickstart

test: export PYTHONDONTWRITEBYTECODE = # an environment that forbids bytecode would have both processes compile every test
test: $(READY)  ## the fast tests
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder

test-slow: $(READY) $(DOCS) $(CLUSTER) $(CLIENTS)  ## the tests that take minutes
	$(BIN)/pytest -m "slow and not gpu"

mutants: $(READY)  ## what the tests would not notice, in one ROOM or all, of a SAMPLE (its DRAW) or all (hours)
	ROOM='$(ROOM)' SAMPLE=$(SAMPLE) DRAW=$(DRAW) $(BIN)/python -m tests.mutants

test-range: $(READY)  ## the wheel on each Ray of the range, in environments of their own (ENV=newest for one; 30 min)
	$(BIN)/python -m tests.version_range $(ENV)

check: $(READY)  ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DOCS)  ## the documentation as a site: site/index.html; to search it: python -m http.server -d site
	$(BIN)/python docs/write.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(JAX)  ## what we aim at in speed: engines, whole studies, the driver; one table at its end (over two hours)
	$(BIN)/python benchmarks/aims.py

bench-search: $(JAX)  ## overheads, how long commands take, cost of the search and its errors (40 minutes)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/search_cost.py
	$(BIN)/python benchmarks/search_slots.py --out results-search-cost
	$(BIN)/python benchmarks/search_statistics.py

clean:  ## remove what the other targets made, except results/
	rm -rf .venv .mutants .range build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find rgr_dist search analysis tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install -c constraints.txt -e ".[dev]"
	touch $@

$(JAX): $(READY)
	$(BIN)/pip install -c constraints.txt -e ".[jax]"
	touch $@

$(DOCS): pyproject.toml constraints.txt | $(BIN)/python  # none of the tools to test with
	$(BIN)/pip install -c constraints.txt -e ".[docs]"
	touch $@

$(CLUSTER): $(READY)
	$(BIN)/pip install -c constraints.txt -e ".[cluster]"
	touch $@

$(CLIENTS): $(READY)
	$(BIN)/pip install -c constraints.txt -e ".[clients]"
	touch $@
