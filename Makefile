# Naiad's workspace: `make help` lists what there is. Needs Python 3.11 or newer with pip and venv, and nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
# each processor runs tests of its own; PARALLEL= runs one after the other
PARALLEL ?= --numprocesses auto --maxprocesses 8 --dist worksteal

MEMBERS   := core/config core/kernel core/kit core/cli core/testing plugins/cache-local plugins/cache-redis plugins/caffe2 plugins/custom plugins/onnx plugins/openvino plugins/scheduler-dynamic plugins/scheduler-ensemble plugins/scheduler-sequence plugins/tensorflow plugins/tensorrt plugins/torch frontends/http frontends/grpc frontends/metrics
PACKAGES  := naiad_config naiad naiad_kit naiad_cli naiad_testing naiad_cache_local naiad_cache_redis naiad_caffe2 naiad_custom triton_python_backend_utils naiad_onnx naiad_openvino naiad_scheduler_dynamic naiad_scheduler_ensemble naiad_scheduler_sequence naiad_tensorflow naiad_tensorrt naiad_torch naiad_http naiad_grpc naiad_metrics
PROJECTS  := $(MEMBERS:%=%/pyproject.toml)
SOURCES   := core/*/src plugins/*/src frontends/*/src
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.installed-for-development
EXAMPLES  := $(VENV)/.examples-built
PIP       := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install serve test test-gpu check format bench torture soak

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv with .venv/bin/naiad and all plugins
	@echo "$(BIN)/naiad is installed"

serve: $(EXAMPLES) ## serve the example models; make serve ARGS='--http-port 9000'
	@$(BIN)/naiad serve examples/models $(ARGS)

test: $(DEVELOPED) ## run the tests on all processors; make test ARGS=core
	@$(BIN)/python -m pytest -m "not gpu" $(PARALLEL) $(ARGS)

test-gpu: $(DEVELOPED) ## run the tests that need a GPU
	@$(BIN)/python -m pytest -m gpu $(ARGS)

check: $(DEVELOPED) ## check format, lint, types and import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy $(PACKAGES:%=-p %)
	@$(BIN)/lint-imports

format: $(DEVELOPED) ## format the code and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(DEVELOPED) $(EXAMPLES) ## measure Naiad, beside its peer where that is set up
	@$(BIN)/python bench/run.py $(ARGS)

torture: $(DEVELOPED) ## attack a server in every known way; make torture ARGS='--only gzip'
	@$(BIN)/python -m bench.torture $(ARGS)

soak: $(DEVELOPED) ## half an hour of mixed traffic; make soak ARGS='--minutes 5'
	@$(BIN)/python bench/soak.py $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Naiad needs Python 3.11 or newer; name one with make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(PROJECTS) core/kernel/src/naiad/_kernel/shared_memory/guard.c constraints.txt | $(BIN)/python
	$(PIP) $(foreach member,$(MEMBERS),--editable $(if $(filter %/onnx,$(member)),'$(member)[cpu]',$(member)))
	@touch $@

$(DEVELOPED): requirements-dev.txt $(INSTALLED)
	$(PIP) --requirement requirements-dev.txt
	@touch $@

$(EXAMPLES): examples/build.py examples/classifier.py examples/drawing.py examples/frameworks.py requirements-examples.txt $(INSTALLED)
	$(PIP) --requirement requirements-examples.txt
	$(BIN)/python examples/build.py
	@touch $@
