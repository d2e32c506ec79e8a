# Needs Python 3.11 or newer, make and a compiler; everything else is installed into .venv by the first target
# that needs it. `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
# Evaluation data; the tests that need it skip, and say so, where it is absent.
DATA ?= ../shared/data
export DATA
# Test workers, and one computing thread in each. One that dies is not replaced: its replacement would begin
# with the test that it died of, again and again.
WORKERS ?= 2

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTHON = $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
PYTEST := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 0

# What `make tables` works with: an index of SQuAD's articles (built where it is missing), an exported reader, and
# a folder for what is answered already and for the index that grows by Wikipedia's articles.
SQUAD_INDEX ?= build/tables/squad.index
READER ?= runs/reader-small/reader-export
SCRATCH ?= build/tables

# Two levels in one environment: what users get, and what the tests add to it.
USER_STAMP := $(VENV)/.installed-user
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: help demo test check quick tables reader constraints clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 22

demo: $(USER_STAMP) ## questions on the sample corpus
	@$(BIN)/denspi demo

test: check ## check, then every test, the slow ones too
	$(PYTEST) --ignore tests/project

check: $(DEV_STAMP) ## format, lint, types, import contracts, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) tests/project

quick: $(DEV_STAMP) ## the tests that take seconds
	$(PYTEST) -m "not slow"

tables: reader $(DEV_STAMP) $(SQUAD_INDEX)/manifest.json ## the paper's tables anew, into docs/results; hours, and goes on where it stopped
	$(BIN)/python experiments/tables/size.py --index $(SQUAD_INDEX)
	$(BIN)/python experiments/tables/samples.py --index $(SQUAD_INDEX)
	$(BIN)/python experiments/tables/plan_check.py --data $(DATA)
	$(BIN)/python experiments/tables/table2.py --index $(SQUAD_INDEX) --reader $(READER) --data $(DATA) \
		--states $(SCRATCH)/squad
	$(BIN)/python experiments/tables/collection_growth.py --index $(SQUAD_INDEX) --data $(DATA) --scratch $(SCRATCH)
	$(BIN)/python experiments/tables/table2.py --index $(SCRATCH)/growing.index --reader $(READER) --data $(DATA) \
		--states $(SCRATCH)/wikipedia --collection "the articles of SQuAD and Wikipedia" \
		--output docs/results/table2-wikipedia.json
	$(BIN)/python experiments/tables/agreement.py --data $(DATA) --index $(SQUAD_INDEX) --index $(SCRATCH)/growing.index
	$(BIN)/python benchmarks/query.py --index $(SQUAD_INDEX) --reader $(READER) --data $(DATA)/squad/dev-v1.1.json.gz \
		--all-articles --questions 500 --document-questions 30 --output docs/results/query.json
	$(BIN)/python experiments/tables/table1.py
	$(BIN)/python experiments/tables/contents.py

reader:
	@test -d $(READER) || { echo "make: $(READER): no exported reader; name one (make tables READER=FOLDER) or train it:" \
		"python experiments/training/runs.py reader-small" >&2; exit 1; }

# The manifest is what a finished index has; the command goes on with one that is not.
$(SQUAD_INDEX)/manifest.json: | $(DEV_STAMP)
	mkdir -p $(dir $(SQUAD_INDEX))
	$(BIN)/denspi index $(DATA)/squad/train-v1.1.json.gz $(DATA)/squad/dev-v1.1.json.gz --output $(SQUAD_INDEX)

constraints: ## write constraints.txt anew, from the newest versions that pyproject.toml allows
	rm -rf build/newest && $(PYTHON) -m venv build/newest
	build/newest/bin/pip install --quiet --upgrade pip hatchling editables
	build/newest/bin/pip install --quiet torch
	build/newest/bin/pip install --quiet --no-build-isolation -e '.[corpus,train,serve,mcp,cluster,dev]'
	{ sed -n '/^#/p' constraints.txt; build/newest/bin/pip freeze --all --exclude-editable \
		| sed -e 's/+[a-z0-9.]*$$//' -e '/^setuptools=/d'; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove caches and build outputs; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend comes first because the package itself is then installed without build isolation: pip would
# otherwise fetch a backend of its own, outside the constraints.
$(USER_STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { \
		echo "make: no Python 3.11 or newer on the PATH; install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --constraint constraints.txt --upgrade pip
	$(PIP) --constraint constraints.txt hatchling editables
	$(PIP) --constraint constraints.txt --no-build-isolation --editable '.[corpus]'
	touch $@

# torch goes in by itself, before any package that asks for it, so that a CPU build is taken where pip is
# configured to find one.
$(DEV_STAMP): $(USER_STAMP)
	$(PIP) --constraint constraints.txt torch
	$(PIP) --constraint constraints.txt --no-build-isolation --editable '.[corpus,train,serve,mcp,dev]'
	touch $@
