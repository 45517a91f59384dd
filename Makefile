# Convex optimization when accuracy is expensive: an executable book.
# `make` lists the targets. Everything lives in .venv; nothing is installed twice.

.PHONY: help book pdf test check run lab bench quality figure-seeds figure-large figure-rivals clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

# One thread per process: the tests run two workers, and a sum must not depend on how many cores there are.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
PAGES := _build/html/index.html
SOURCES := _config.yml _toc.yml mlgd/book/notation.py $(wildcard mlgd/*.py book/*.ipynb book/audit/*.ipynb book/*.md book/*.bib book/_static/*)
JUPYTERLAB := 4.6.6

# The first of these that is Python 3.11, 3.12 or 3.13; PYTHON=... chooses another.
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))

help: ## list the targets
	@echo "usage: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' Makefile | expand -t 16

book: $(PAGES) ## build the book from the committed outputs and print the page to open
	@echo "The book is built. Open $(CURDIR)/$(PAGES)"

pdf: $(READY) ## print the book as one PDF, _build/book.pdf, with the system's Chromium (a few minutes)
	@$(BIN)/python -m mlgd.book.chapters pdf

test: $(PAGES) ## everything: linter, unit tests, every chapter executed and compared, the book's own tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env --nbval-cell-timeout 600 --durations 10 --durations-min 1 book tests

check: $(READY) ## the minute-long subset: linter, quick unit tests, the static tests of the book
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not built" tests

run: $(READY) ## execute every chapter in place in a fresh kernel; one of them: make run CHAPTER=oracle, or audit/oracle
	$(BIN)/python -m mlgd.book.chapters run $(CHAPTER)

lab: $(READY) ## open the chapters in JupyterLab (installed on first use)
	@test -x $(BIN)/jupyter-lab || $(BIN)/python -m pip install -c requirements.txt jupyterlab==$(JUPYTERLAB)
	$(BIN)/jupyter-lab book

bench: $(READY) ## run the benchmarks, tests/bench_*.py
	@for script in tests/bench_*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

quality: $(READY) ## judge minimize on the quality bench: promises, prices over others (four minutes; half of one with QUALITY=--tool, which keeps the others)
	$(BIN)/python -m mlgd.experiment.quality $(QUALITY)

figure-seeds: $(READY) ## run the experiment's twenty seeds and keep what its audit reads (two minutes)
	$(BIN)/python -m mlgd.experiment.sweep --out book/data/seeds.json

figure-large: $(READY) ## run the experiment's second size, 65536 x 4 million, resumable (half an hour on two idle cores)
	$(BIN)/python -m mlgd.experiment.large --out book/data/large.json

figure-rivals: $(READY) ## run the contest of methods and keep what Your own hierarchy reads, resumable (an hour)
	$(BIN)/python -m mlgd.experiment.rivals --out book/data/rivals.json

clean: ## remove what was built and installed
	rm -rf _build $(VENV) build .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- set-up ------------------------------------------------------------------------------------------------------------

$(READY): requirements.txt pyproject.toml
	@[ -x $(BIN)/python ] || { \
	  for python in $(CANDIDATES); do "$$python" -c '$(FITS)' 2>/dev/null && break; python=; done; \
	  [ -n "$$python" ] || { echo "This book needs Python 3.11, 3.12 or 3.13 and found none of them (tried: $(CANDIDATES)): install one, or name it with make PYTHON=/path/to/python." >&2; exit 1; }; \
	  "$$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python ($$python) has no venv module: install it (on Debian and Ubuntu: apt-get install python3-venv) and run make again." >&2; exit 1; }; \
	  echo "Making $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV); }
	@echo "Installing the pinned packages into $(VENV), once (a minute or two)"
	$(BIN)/python -m pip install -r requirements.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

# Built anew whenever a source changed: a cached page would hide its warnings from the next build.
$(PAGES): $(SOURCES) $(READY)
	rm -rf _build
	@$(BIN)/jupyter-book build . --path-output . --quiet -n -W --keep-going || { \
	  rm -rf _build; echo "The book did not build: mend what the warnings above name and run make book again." >&2; exit 1; }
