# Five commands, for a fresh machine with Python 3.11 or newer:
#   make                 set up .venv, then run the default workflow
#   make setup           set up .venv, and nothing else
#   make test            set up .venv, then run every check, and every test but the slow ones
#   make test-workflow   the rest: the real workflow, run in temporary folders, and other tests that take long
#   make test-newest     the tests with the newest versions that pyproject.toml allows, in an environment of its own
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
	$(BIN)/pytest -n 2 --dist loadfile -m "not workflow and not slow"

test-workflow: $(VENV)/.done
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "workflow or slow"

test-newest:
	rm -rf $(VENV)-newest
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable ".[hub,spams,test]"
	$(VENV)-newest/bin/python -m pip list
	$(VENV)-newest/bin/pytest -n 2 --dist loadfile -m "not workflow" --deselect tests/test_dependencies.py

setup: $(VENV)/.done

LOCKED = $(BIN)/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation --use-pep517
CUDA = import sys, importlib.metadata as m; sys.exit(not any(r.startswith("nvidia-") for r in m.requires("torch")))

NO_SPAMS = masklab: SPAMS was not installed (pip says why): no dictionary with backend: spams can be learned here

TORCH = $$(grep -o '^torch==[0-9.]*' envs/lock-torch.txt)

# Every file is checked by its hash, but for a build of torch from TORCH_INDEX, which that index vouches for. By itself
# pip would take PyPI's build, with gigabytes for CUDA, also where pip is set up to find one for CPUs; so that is fetched
# first (a version 2.0+cpu goes before 2.0) and then checked.
$(VENV)/.done: $(wildcard envs/lock*.txt) pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "MaskLab needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip download --quiet --no-deps --dest $(VENV)/torch $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(TORCH)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --no-deps $(VENV)/torch/*,$(LOCKED) --no-index --find-links $(VENV)/torch -r envs/lock-torch.txt)
	rm -r $(VENV)/torch
	$(LOCKED) -r envs/lock-build.txt
	$(LOCKED) -r envs/lock.txt
	$(LOCKED) --only-binary=:all: -r envs/lock-spams.txt || echo "$(NO_SPAMS)"
	if $(BIN)/python -c '$(CUDA)'; then $(LOCKED) -r envs/lock-cuda.txt; fi
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	-$(BIN)/python -m masklab.compile_ahead
	touch $@

.PHONY: run test test-workflow test-newest setup
.DEFAULT_GOAL := run
