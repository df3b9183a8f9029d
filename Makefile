# make generate    regenerate everything from spec/
# make check       say what generate would change
# make test        test the product: no GPU, no assembler, no torch
# make test-lowest test the library with the lowest versions of what it needs
# make proof-test  test the proof, as far as its tools are here
# make test-all    both, with torch, CUTLASS's headers and the disassembler
# make transcripts record what the commands of the docs print
# make dist        build the wheel and the source archive, and try both where nothing else is installed, with every Python of PYTHONS
# make docs        build the site into docs/_build/html; SITE=URL: its public address, which cards of its pages need for their picture
# make lint        ruff and mypy
# make bench       measure
# make bench-gpu   time the example kernels against the libraries that are here: needs a Hopper GPU, the CUDA toolkit, PyTorch, CUTLASS=DIR
# make assemblers  fetch the pinned ptxas releases into .cache/assemblers
# make differences compare with other projects and record where they differ; CHECKOUTS="NAME=DIR …", as docs/peers.rst names them
# make evidence    the same, and ask every other witness that is here; REFERENCE=DIR: the manual's text too
# make corpus      compare the checker with ptxas on PTX of other projects
# make fuzz        ten minutes of hostile input for the checker
# Each target installs what it needs, and nothing else, in .venv first: with uv where it is here, else with pip.

PYTHON ?= python3
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
BIN := .venv/bin
ifneq ($(shell command -v uv 2>/dev/null),)
VENV = uv venv --quiet --allow-existing --python $(PYTHON) .venv
INSTALL = uv pip install --quiet --python $(BIN)/python
else
VENV = $(PYTHON) -m venv .venv
PIP_GROUPS = $(INSTALL) --upgrade "pip>=25.1" # knows dependency groups
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif
PROOF := $(BIN)/python -m ptxmma_proof
EVIDENCE := spec/evidence

# A target starts Python many times, the tests some hundred times: what one process compiles, the next one reads, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: generate check test test-lowest proof-test test-all transcripts dist docs lint bench bench-gpu assemblers differences evidence corpus fuzz clean

generate: .venv/.generate
	$(BIN)/ptxmma generate

check: .venv/.generate
	$(BIN)/ptxmma generate --check

test: .venv/.test
	$(BIN)/python -m pytest tests --ignore tests/proof

# What computes with NumPy and ml_dtypes, reads the database with msgspec, and draws with rich.
test-lowest: .venv/lowest/.ready
	PYTHONPATH=codegen:generated/python .venv/lowest/bin/python -m pytest -n 0 -p no:cacheprovider \
	  tests/test_registers.py tests/test_scaling.py tests/test_sparse.py tests/test_shared_memory.py tests/test_whole_product.py tests/test_list.py

proof-test: .venv/.proof
	$(BIN)/python -m pytest tests/proof

test-all: .venv/.all
	$(BIN)/python -m pytest

transcripts: .venv/.test
	$(BIN)/python tests/transcripts.py

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dist: .venv/.test
	rm -rf dist
	$(BIN)/python -m hatchling build
	for python in $(PYTHONS); do $$python tests/try_distribution.py dist/* || exit 1; done

docs: .venv/.docs
	$(BIN)/sphinx-build -n -W --keep-going -j auto $(if $(SITE),-D html_baseurl=$(SITE)) -b html docs docs/_build/html

bench: .venv/.all
	$(BIN)/python tests/bench.py

bench-gpu:
	CUTLASS=$(CUTLASS) tests/gpu/bench.sh | tee docs/examples/speed.csv

assemblers: .venv/.proof
	$(PROOF) fetch

differences: .venv/.all assemblers
	$(INSTALL) --group tensor-peers --group corpus
	$(PROOF) peers $(CHECKOUTS:%=--checkout %) --record $(EVIDENCE) --layouts codegen/ptxmma_proof/recorded
	$(MAKE) generate

# A run ends with 1 where something disagrees; the others are asked all the same.
evidence: .venv/.all assemblers
	-$(PROOF) assembler --record $(EVIDENCE)/assembler.jsonl
	-$(MAKE) differences
	-$(if $(REFERENCE),$(PROOF) reference $(REFERENCE) --record $(EVIDENCE)/reference.jsonl)
	@if nvidia-smi > /dev/null 2>&1; then $(PROOF) silicon --record $(EVIDENCE)/silicon.jsonl; else echo "no GPU here"; fi
	$(PROOF) mutate --record $(EVIDENCE)/mutation.jsonl
	$(MAKE) generate

corpus: .venv/.proof assemblers
	$(INSTALL) --group corpus
	$(PROOF) corpus judge --record $(EVIDENCE)/corpus.jsonl

fuzz: .venv/.proof
	$(INSTALL) --group fuzz
	$(BIN)/python tests/fuzz_check.py -max_total_time=600

# --- what each purpose needs ---------------------------------------------------------------------------------------------------

.venv/.generate: pyproject.toml
	$(VENV)
	$(INSTALL) --editable ".[generate]"
	touch $@

.venv/.test: .venv/.generate
	$(PIP_GROUPS)
	$(INSTALL) --group test
	touch $@

# An environment of its own.
.venv/lowest/.ready: .venv/.generate tests/lowest_versions.py
	$(BIN)/python -m venv .venv/lowest
	$(BIN)/python tests/lowest_versions.py > .venv/lowest/requirements.txt
	$(subst $(BIN)/,.venv/lowest/bin/,$(INSTALL)) --requirement .venv/lowest/requirements.txt
	touch $@

.venv/.proof: .venv/.test
	$(INSTALL) --group proof
	touch $@

.venv/.lint: .venv/.proof
	$(INSTALL) --group lint
	touch $@

.venv/.docs: .venv/.generate
	$(INSTALL) --editable ".[generate,docs]"
	touch $@

.venv/.all: .venv/.proof
	$(INSTALL) --group all
	$(INSTALL) --no-deps --group peers
	touch $@

clean:
	rm -rf .venv docs/_build build dist
