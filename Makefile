# make demo | test | test-all | check | bench: each sets up what it needs, in .venv, on a fresh
# machine.
# make bench NAMES='tables weights' runs those named only.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-rest test-all coverage lowest check bench docs snippets notebooks reproduction format r-packages clean

# One venv; the stamp is newer than pyproject.toml when everything in it is installed.
$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dp]"
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs,report,dp,tables,files]"
	touch $@

demo: $(VENV)/.core
	$(BIN)/pyhybrid demo --out pyhybrid-demo --overwrite

# In two processes, a file in one of them; tests/conftest.py says which files start, and what is
# left to the rest: tests that sample, need R or take long.
PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder
test: $(VENV)/.dev
	$(PYTEST) -m "not rest"

test-rest: $(VENV)/.dev r-packages
	$(PYTEST) -m rest

test-all: $(VENV)/.dev r-packages
	$(PYTEST)

coverage: $(VENV)/.dev
	$(BIN)/python -m coverage run --branch --source=pyhybrid -m pytest
	$(BIN)/python -m coverage report --skip-covered --show-missing

# A quick part of the tests, under the lowest versions that pyproject.toml allows.
lowest: $(VENV)/.dev
	$(BIN)/python .ci/lowest.py build/lowest

check: $(VENV)/.dev
	$(BIN)/ruff format --check pyhybrid tests benchmarks
	$(BIN)/ruff check pyhybrid tests benchmarks
	$(BIN)/mypy pyhybrid
	$(BIN)/proselint check docs/pages README.md

format: $(VENV)/.dev
	$(BIN)/ruff format pyhybrid tests benchmarks
	$(BIN)/ruff check --fix pyhybrid tests benchmarks

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(NAMES)

# The documentation, into build/site; it can be read offline.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q -f docs/mkdocs.yml

# Every snippet of the documentation at full length; the tests run the same with a short warm-up.
snippets: $(VENV)/.dev
	PYHYBRID_SNIPPETS=full $(BIN)/python -m pytest tests/docs/test_snippets.py

# The notebooks at quick size, as HTML for the documentation.
notebooks: $(VENV)/.dev r-packages
	mkdir -p $(VENV)/R && (! command -v R >/dev/null || R CMD INSTALL --no-docs --library=$(VENV)/R .)
	export R_LIBS=$(CURDIR)/$(VENV)/R; for n in notebooks/*.ipynb; do \
	  $(BIN)/pyhybrid notebook $$(basename $$n .ipynb) --overwrite \
	    --out docs/$${n%.ipynb}.html || exit 1; done

# The reproduction table of all studies in build/: SIZE=quick takes some minutes. What notebooks/
# holds is of SIZE=paper, copied by hand. Study J with CSRG=csrg.csv, the file of [J22]'s supplement.
SIZE ?= quick
STUDIES := build/studies-$(SIZE)
reproduction: $(VENV)/.dev
	rm -rf $(STUDIES); for s in A B C D E F G H I K L; do \
	  $(BIN)/pyhybrid study run $$s --size $(SIZE) --workers 2 --engine embedded --out $(STUDIES)/$$s || exit 1; done
	[ -z "$(CSRG)" ] || $(BIN)/pyhybrid study run J --size $(SIZE) --data "$(CSRG)" --engine embedded --out $(STUDIES)/J
	$(BIN)/pyhybrid study table $(STUDIES)/? --overwrite \
	  --out build/reproduction-$(SIZE).md --csv build/reproduction-$(SIZE).csv

# R and rstan through apt where there is apt and root; else their tests skip and say so.
r-packages: $(VENV)/.dev
	@bash tests/install_r.sh $(BIN)/python

clean:
	rm -rf $(VENV) pyhybrid-demo pyhybrid-demo-local build dist .pytest_cache .mypy_cache .ruff_cache
