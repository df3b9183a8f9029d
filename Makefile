# make generate   regenerate everything from spec/
# make test       run every check
# make docs       build the site into docs/_build/html
# make lint       ruff and mypy
# make bench      measure
# make assemblers fetch the pinned ptxas releases into .cache/assemblers
# make sweep      hold every variant against them
# Each target sets up what it needs in .venv first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: generate check test docs lint bench assemblers sweep clean

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
	$(BIN)/python -m ptxmma.verify.assemblers

bench: $(STAMP)
	$(BIN)/python tests/bench.py

sweep: assemblers
	$(BIN)/python -m ptxmma.verify.sweep

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[generate,docs]" --group test --group torch --group lint
	touch $@

clean:
	rm -rf .venv docs/_build build dist
