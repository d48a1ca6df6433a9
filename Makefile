# Every target sets up .venv by itself, once; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
STUBS := $(VENV)/rp2-stubs
STUBS_PIN := micropython-rp2-rpi-pico-stubs==1.29.0.post1

.PHONY: help setup demo flash test fuzz audit lint types bench image clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with everything pinned in pyproject.toml

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v < (3, 14) else "Python 3.10 to 3.13 is needed; this is %d.%d. Name another with: make PYTHON=python3.12 ..." % v)'
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@# The stubs bring their own copy of the standard library's types: kept apart from the host's.
	@$(BIN)/python -m pip install -q --disable-pip-version-check --target $(STUBS) $(STUBS_PIN)
	@touch $@

demo: $(STAMP) ## play rounds on the virtual table (ARGS="--rounds 10 --seed 7")
	@$(BIN)/tablectl demo $(ARGS)

flash: $(STAMP) ## copy the firmware to the board that is plugged in (PORT=... where there are more)
	@$(BIN)/tablectl flash $(if $(PORT),--port $(PORT)) $(ARGS)

test: lint ## lint, types, then the tests (ARGS="-k streak" to narrow)
	@# Test files differ by minutes: a worker that is done takes over from the others.
	@# Tables in real time share the processor with all else: what failed is run once more, alone, and told.
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS) || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(ARGS)

fuzz: $(VENV)/.fuzz ## made-up input for everything that takes input (ARGS="--seconds 600 frame web --json")
	@$(BIN)/python -m tests.fuzz $(ARGS)

$(VENV)/.fuzz: $(STAMP)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[fuzz]'
	@touch $@

audit: $(STAMP) ## known vulnerabilities of what is installed; exit code 2 where that cannot be known
	@$(BIN)/python -m tests.dependencies $(ARGS)

lint: $(STAMP) types ## ruff, and mypy for host and firmware
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	MYPYPATH=$(STUBS) $(BIN)/mypy --config-file tests/firmware.mypy.ini --custom-typeshed-dir $(STUBS)

bench: $(STAMP) ## measure, as ratios where two things are compared
	$(BIN)/python -m tests.bench $(ARGS)

image: $(STAMP) ## download the official Pico image for the emulator tests
	@$(BIN)/python -m boards.virtual.image

clean: ## remove .venv and caches
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
