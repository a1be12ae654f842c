# Two commands: `make run` shows the product on this machine, `make test` checks it.

# What `make run` runs. A CPU takes the first tasks of a small suite (a few minutes); a GPU takes the whole tool suite.
IS_CPU = $(filter cpu,$(shell cat .venv/engine 2>/dev/null))
SUITE ?= $(if $(IS_CPU),tasks/starter,tasks/toolsuite)
CONTRACT ?= strict
ARGS ?= $(if $(IS_CPU),--limit 3)

.PHONY: run _run test quick env clean
.DEFAULT_GOAL := run

run: env
	@.venv/bin/agenteval models pull >&2
	@$(MAKE) --no-print-directory _run
	@echo "next      . .venv/bin/activate; agenteval tui; agenteval show; agenteval sql 'from trajectories'" >&2

_run:
	.venv/bin/agenteval run $(SUITE) --contract $(CONTRACT) $(ARGS)

test: env
	@.ci/checks

quick: env
	@.ci/checks quick

env:
	@.ci/install

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
