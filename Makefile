# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make                 set up .venv, then run the default workflow
#   make test            set up .venv, then run every check, and every test but those of the workflow as a whole
#   make test-workflow   the rest: the real workflow, run in temporary folders
# PYTHON chooses the interpreter, VENV the environment, TORCH_INDEX a wheel index for torch
# (e.g. https://download.pytorch.org/whl/cpu for the smaller CPU build).
PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
BIN = $(VENV)/bin

run: $(VENV)/.done
	$(BIN)/snakemake --cores all

test: $(VENV)/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint
	$(BIN)/pytest -n 2 --dist loadfile -m "not workflow"

test-workflow: $(VENV)/.done
	$(BIN)/pytest -m workflow

setup: $(VENV)/.done

$(VENV)/.done: envs/lock.txt envs/lock-no-deps.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "MaskLab needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -r envs/lock.txt
	$(BIN)/python -m pip install --quiet --no-deps -r envs/lock-no-deps.txt --editable .
	touch $@

.PHONY: run test test-workflow setup
.DEFAULT_GOAL := run
