# Everyday commands. `make help` lists them.
BUILD_DIR ?= build
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
PYTHON = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-python build build-python run test bench bench-copy format lint tidy clean

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## Packages the C++ build needs (Debian; installs where it may)
	@tools/setup.sh system

setup-python: setup ## The same, and the Python packages of the tests in .venv
	@tools/setup.sh python

# Tests and examples are configured in; each target builds only what it needs.
$(BUILD_DIR)/build.ninja: | setup
	@cmake -S . -B $(BUILD_DIR) -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE)

build: setup $(BUILD_DIR)/build.ninja ## Everything: library, command line, tests, examples
	@cmake --build $(BUILD_DIR) -j $(JOBS)

run: setup $(BUILD_DIR)/build.ninja ## Every shipped model: rotated, verified, timed, one table
	@cmake --build $(BUILD_DIR) -j $(JOBS) --target ropewalk_cli
	@$(BUILD_DIR)/cli/ropewalk run $(ARGS)

bench: build-python ## Beside other implementations, each verified, then timed (ARGS="--no-fixed --tokens 1,256")
	@PYTHONPATH=$(BUILD_DIR)/python $(PYTHON) -m ropewalk bench --fetch $(BUILD_DIR)/peers || \
		echo "bench: what could not be fetched is left out" >&2
	@PYTHONPATH=$(BUILD_DIR)/python $(PYTHON) -m ropewalk bench --against all \
		--packages $(BUILD_DIR)/peers --report $(BUILD_DIR)/field.csv $(ARGS)
	@echo "The same with the machine's facts, to send: $(BUILD_DIR)/field.csv"

bench-copy: setup $(BUILD_DIR)/build.ninja ## Time rotations beside copying (ARGS="--tokens 1,256")
	@cmake --build $(BUILD_DIR) -j $(JOBS) --target ropewalk_cli
	@$(BUILD_DIR)/cli/ropewalk bench $(ARGS)

build-python: setup-python ## The Python package in build/python
	@cmake -S . -B $(BUILD_DIR) -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) \
		-DROPEWALK_TORCH=ON -DROPEWALK_PYTHON=$(CURDIR)/$(PYTHON)
	@cmake --build $(BUILD_DIR) -j $(JOBS) --target ropewalk_python

test: setup-python ## Every test: C++, Python, PyTorch, lint, layers, the bug map; one closing line
	@cmake -S . -B $(BUILD_DIR) -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) \
		-DROPEWALK_TORCH=ON -DROPEWALK_PYTHON=$(CURDIR)/$(PYTHON)
	@cmake --build $(BUILD_DIR) -j $(JOBS)
	@BUILD_DIR=$(BUILD_DIR) JOBS=$(JOBS) tools/test.sh

format: ## clang-format and ruff over what git knows
	@tools/format.sh

lint: ## Formatting, ruff, layers, file sizes, the bug map; changes nothing
	@tools/format.sh --check
	@python3 tools/check_layers.py
	@python3 tools/bug_map.py --check

tidy: setup $(BUILD_DIR)/build.ninja ## clang-tidy over FILES, by default verify/, cli/, the CPU kernels; minutes
	@tools/tidy.sh $(BUILD_DIR) $(FILES)

clean: ## Remove the build folder
	@rm -rf $(BUILD_DIR)
