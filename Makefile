# Needs make and a Python of 3.11 or newer; everything else is installed into .venv and .venv-1.0.

PYTHON ?= python3
PORT ?= 8765
PYTEST_ARGS ?= -n 2
BENCH ?= speed

# .venv serves everything; .venv-1.0 runs the same tests on the next Datasette.
comma := ,
# 0.65 has neither tokens nor permissions in its configuration; these two plugins add them.
STABLE := datasette==0.65.5 datasette-auth-tokens==0.3 datasette-permissions-metadata==0.1
NEXT := datasette==1.0a41

.DEFAULT_GOAL := help
.PHONY: help test test-faults test-npm test-clients test-vectors demo lint docs bench clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' Makefile

# $(call environment,FOLDER,PACKAGES,EXTRAS): a fresh virtual environment with this project in it, editable.
# pip builds in isolation, as it does by itself: the setuptools that Debian's venv seeds is too old to share.
define environment
	@for python in "$(PYTHON)" python3 python3.11 python3.12 python3.13 python3.14 python3.15; do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    echo "$(1): installing $(2) with $$("$$python" --version) (once, a minute or two)"; \
	    "$$python" -m venv --clear "$(1)" || exit 1; \
	    "$(1)/bin/python" -m pip --disable-pip-version-check install --quiet \
	        --editable '.[$(3)]' $(2) || exit 1; \
	    touch "$@"; exit 0; \
	done; \
	echo 'No Python of 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python3.12' >&2; \
	exit 1
endef

.venv/.installed: setup.cfg pyproject.toml
	$(call environment,.venv,$(STABLE),test)

.venv-1.0/.installed: setup.cfg pyproject.toml
	$(call environment,.venv-1.0,$(NEXT),test)

test: .venv/.installed .venv-1.0/.installed ## Run the tests on both Datasettes (PYTEST_ARGS=...)
	@status=0; \
	for venv in .venv .venv-1.0; do \
	    echo "== $$($$venv/bin/datasette --version), in $$venv"; \
	    $$venv/bin/python -m pytest $(PYTEST_ARGS) || status=1; \
	done; \
	exit $$status

test-faults: .venv/.installed ## Kill at every point, fill the disk, let a crowd in (minutes)
	.venv/bin/python -m pytest -m faults

# Node, the conformance suite of MCP and its inspector, in their own folder.
.npm/.installed: tests/npm/package.json
	@mkdir -p .npm
	cp tests/npm/package.json .npm/
	cd .npm && npm install --no-audit --no-fund --loglevel=error
	@touch $@

test-npm: .venv/.installed .venv-1.0/.installed .npm/.installed ## Run the conformance suite and the inspector of MCP (needs npm)
	.venv/bin/python -m pytest -m npm
	.venv-1.0/bin/python -m pytest -m npm

# Real agent clients take 3 GB, so they are kept outside, for every checkout of this user.
CLIENTS_FOLDER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/datasette-memory/clients

test-clients: .venv/.installed ## Run real agent clients offline (needs npm; CLIENTS="codex cline": these alone)
	PYTHONPATH=. .venv/bin/python tests/clients/fetch.py "$(CLIENTS_FOLDER)" $(CLIENTS)
	MEMORY_TEST_CLIENTS_FOLDER="$(CLIENTS_FOLDER)" MEMORY_TEST_CLIENTS="$(CLIENTS)" \
	    .venv/bin/python -m pytest -m clients tests/clients

.venv-vectors/.installed: setup.cfg pyproject.toml
	$(call environment,.venv-vectors,$(STABLE),test$(comma)vectors)

test-vectors: .venv-vectors/.installed ## Run the tests of vectors with the real model (100 MB more)
	.venv-vectors/bin/python -m pytest -m vectors

demo: export MEMORY_AGENT_HOME := $(CURDIR)/demo
demo: .venv/.installed ## Index the sample vault, search it, serve it in Datasette (SERVE=0: do not serve; PORT=8765)
	@mkdir -p demo
	.venv/bin/memory-import demo/memory.db examples/vault
	.venv/bin/memory search 备份 -n 3
	.venv/bin/memory search "restore drill" -n 2
	.venv/bin/memory search userById -n 2
ifneq ($(SERVE),0)
	.venv/bin/memory serve --port $(PORT)
endif

lint: .venv/.installed ## Check style
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

docs: .venv/.installed ## Bring the generated parts of the documentation up to date
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/cog -r README.md docs/*.md

.venv/.bench: .venv/.installed
	.venv/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[bench]'
	@touch $@

bench: .venv/.bench ## Measure speed and size (BENCH=keywords: how keywords are answered; ARGS=...)
	.venv/bin/python -m bench.$(BENCH) $(ARGS)

clean: ## Remove what was built and installed here, and the demo
	rm -rf .venv .venv-1.0 .npm demo build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
