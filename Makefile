# make generate   regenerate everything from spec/
# make test       run every check
# make docs       build the site into docs/_build/html
# make lint       ruff and mypy
# make bench      measure
# make assemblers fetch the pinned ptxas releases into .cache/assemblers
# make verify     ask them about everything, and write the evidence
# make evidence   ask every witness that is here: assemblers, peers, a GPU, mutants; REFERENCE=DIR: the manual's text too
# make mutate     change one fact at a time: would anybody notice?
# make corpus     hold the checker against ptxas on PTX of other projects
# make fuzz       ten minutes of hostile input for the checker
# Each target sets up what it needs in .venv first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: generate check test docs lint bench assemblers verify evidence mutate corpus fuzz clean

generate: $(STAMP)
	$(BIN)/ptxmma generate

check: $(STAMP)
	$(BIN)/ptxmma generate --check

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/sphinx-build -n -W --keep-going -b html docs docs/_build/html

assemblers: $(STAMP)
	$(BIN)/python -m ptxmma_proof.assemblers

bench: $(STAMP)
	$(BIN)/python tests/bench.py

verify: assemblers
	$(BIN)/python -m ptxmma_proof --assembler --report spec/evidence/assembler.json

evidence: verify
	$(BIN)/python -m ptxmma_proof --peers --report spec/evidence/peers.json
	$(if $(REFERENCE),$(BIN)/python -m ptxmma_proof --reference $(REFERENCE) --report spec/evidence/examples.json)
	@if nvidia-smi > /dev/null 2>&1; \
	then $(BIN)/python -m ptxmma_proof --silicon --report spec/evidence/silicon.json || test $$? -eq 2; \
	else echo "no GPU here: spec/evidence/silicon.json stays as it is"; fi  # 2: it is the report of another chip, which stays
	$(MAKE) mutate
	$(MAKE) generate

mutate: $(STAMP)
	$(BIN)/python -m ptxmma_proof.mutation --report spec/evidence/mutation.json

corpus: assemblers
	$(BIN)/python -m pip install --quiet --group corpus
	$(BIN)/python -m ptxmma_proof.corpus judge --report spec/evidence/corpus.json

fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --group fuzz
	$(BIN)/python tests/fuzz_check.py -max_total_time=600

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[generate,docs,verify]" --group test --group torch --group machine --group lint
	$(BIN)/python -m pip install --quiet --no-deps --group peers
	touch $@

clean:
	rm -rf .venv docs/_build build dist
