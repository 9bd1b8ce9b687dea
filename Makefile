# `make` sets up and makes everything; `make test` checks; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

PYTHON ?= python3
# Where torch for the CPU alone comes from; empty: from where all packages do, for Linux with CUDA.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
VENV := .venv
BIN := $(VENV)/bin
# Twice as many as two cores: tests spend much of their time waiting for what they have started.
PYTEST := $(BIN)/python -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder
BUILD := build
STAMPS := $(BUILD)/stamps
CLASS := $(BUILD)/sample_class
HTML := $(BUILD)/book/_build/html
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 2
# Every process that imports torch would spend a second compiling its modules if none were kept.
unexport PYTHONDONTWRITEBYTECODE

CODE := $(shell find autograder attention_by_hand solutions -name '*.py' 2>/dev/null)
TEXT := $(shell find book -type f ! -path '*/__pycache__/*' 2>/dev/null) _config.yml _toc.yml
# What else pages show, hand out or link to: measurements, notebooks, what `check` compares with.
DATA := $(wildcard benchmarks/*.json course.toml) $(shell find notebooks autograder attention_by_hand -type f \
  ! -name '*.py' ! -path '*/__pycache__/*' ! -path '*/.ipynb_checkpoints/*' 2>/dev/null)

.PHONY: all
all: env  ## set up, release the notebooks, grade the sample class, build the book
	@$(MAKE) -j2 BESIDE=nice notebooks chapters  # the chapters take longest: they come first
	@$(MAKE) -j2 RUN=--no-run class book
	@echo
	@echo "environment   $(VENV)            (activate: source $(BIN)/activate)"
	@echo "notebooks     notebooks/       what students get, $$(ls -d notebooks/[0-9]* | wc -l) chapter(s)"
	@echo "sample class  $(CLASS)/report.html   marks, aspects, mistakes, times"
	@echo "book          $(HTML)/index.html"

.PHONY: help
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'

# --- the system's tools and the environment ---

# $(call tool,COMMAND,DEBIAN PACKAGE,WHAT FOR)
define tool
	@command -v $(1) >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $(2) ($(3))"; \
	    { apt-get install -y -qq $(2) || { apt-get update -qq && apt-get install -y -qq $(2); }; } >/dev/null 2>&1 \
	      || { echo "$(2) could not be installed: apt-get install $(2)" >&2; exit 1; }; \
	  else \
	    echo "$(1) is missing ($(3)). On Debian or Ubuntu: sudo apt-get install $(2)" >&2; exit 1; \
	  fi; }
endef

.PHONY: tools browser test-tools
tools:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 or later with venv is needed. On Debian: sudo apt-get install python3-venv" >&2; exit 1; }
	$(call tool,bwrap,bubblewrap,runs students' code in isolation)

browser:
	$(call tool,chromium,chromium,prints the book; the tests look at its pages in it)

test-tools: tools browser
	$(call tool,pg_ctlcluster,postgresql,the tests keep a gradebook on such a server)

.PHONY: env
env: tools $(STAMPS)/env  ## .venv with everything in it

$(STAMPS)/env: requirements.txt constraints.txt pyproject.toml
	@echo "making $(VENV) (a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --upgrade pip==26.3 || true  # Python's own takes twice as long
	@$(BIN)/python -c 'import torch' 2>/dev/null || { [ -n "$(TORCH_INDEX)" ] && \
	  timeout 5 $(BIN)/python -c 'import sys, urllib.request as u; u.urlopen(sys.argv[1])' \
	    "$(TORCH_INDEX)/torch/" >/dev/null 2>&1 && $(BIN)/python -m pip install --no-compile \
	    --index-url "$(TORCH_INDEX)" $$(grep ^torch== requirements.txt) --no-deps; } \
	  || echo "torch comes from where other packages do: on Linux up to 3 GB of downloads, 6 GB on disk"
	@$(BIN)/python -m pip install --no-compile -r requirements.txt -c constraints.txt
	@$(BIN)/python -m pip install --no-compile --no-deps -e .
	@mkdir -p $(STAMPS) && touch $@

# --- what is made ---

.PHONY: notebooks
notebooks: env $(STAMPS)/notebooks  ## chapters -> notebooks/

$(STAMPS)/notebooks: $(STAMPS)/env $(CODE) $(TEXT) nbgrader_config.py
	@echo "releasing the notebooks"
	@$(BESIDE) $(BIN)/autograder release --draft
	@touch $@

.PHONY: class
class: notebooks $(STAMPS)/class  ## grade the sample class and draw its report

$(STAMPS)/class: $(STAMPS)/notebooks
	@echo "grading the sample class"
	@$(BIN)/autograder sample $(CLASS)
	@touch $@

.PHONY: chapters
chapters: env  # run their notebooks: the slowest part of the book
	@echo "running the chapters' notebooks (some minutes)"
	@$(BIN)/python -m autograder.publishing.chapter_runs

.PHONY: book
book: env $(STAMPS)/book  ## build the book's pages

$(STAMPS)/book: $(STAMPS)/env $(CODE) $(TEXT) $(DATA)
	@echo "building the book's pages"
	@$(BIN)/autograder book $(RUN)
	@touch $@

.PHONY: pdf
pdf: browser env  ## print the book: build/attention-by-hand.pdf
	@$(BIN)/autograder pdf

# --- checks ---

.PHONY: test
test: test-tools env  ## check each kind of promise, some cases of each; the pages where `make` built them
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary & types=$$!; $(PYTEST) || { wait $$types; exit 1; }; wait $$types

.PHONY: test-all
test-all: test-tools env  ## all that `make test` leaves out: CI runs both
	@$(PYTEST) -m 'full and not nightly'

.PHONY: nightly
nightly: test-tools env  ## what takes too long for each commit; screenshots of every page
	@$(PYTEST) -m nightly

.PHONY: mutants
mutants: env  ## change every line of every reference, and see that it costs marks
	@$(BIN)/python -m benchmarks.mutants

.PHONY: matrix
matrix: test-tools env  ## judge all known answers, and store what the About page shows of it
	@$(PYTEST) -m 'full or not full' tests/course/test_matrix.py
	@$(BIN)/python -c 'import json, sys; json.dump(json.load(sys.stdin), sys.stdout)' \
	  < $(BUILD)/matrix.json > benchmarks/matrix.json

.PHONY: format
format: env  ## put the code into the project's format
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

.PHONY: serve
serve: book  ## look at the book: http://localhost:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) 8000

.PHONY: constraints
constraints: env  ## freeze the environment into constraints.txt
	@$(BIN)/python -m pip freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+)\+cpu$$/\1/' > constraints.txt

.PHONY: clean
clean:  ## remove what was made, keep the environment
	@rm -rf $(BUILD) .pytest_cache .ruff_cache .mypy_cache
