# Every target installs what it needs first; a second run finds the stamps and starts in seconds.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help start build check test test-all bench simulate fuzz fmt setup wasm core package samples test-package test-oracle test-bad test-stores

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

start: wasm ## Build everything and serve the page with sample tables at a printed address
	@scripts/build-js.sh
	@scripts/setup.sh python
	@scripts/start.sh

build: wasm core ## Build the package and the page; prints the sizes of both engines, fails when core is over its budget
	@scripts/build-js.sh
	@node scripts/sizes.mjs

check: ## Format, lints, unit and fixture tests, TypeScript types (5 minutes at most)
	@scripts/setup.sh native
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	@scripts/setup.sh wasm node
	@scripts/clippy-wasm.sh
	@scripts/build-js.sh package
	cargo test --locked
	npm run --silent check:types

test: check test-package test-oracle test-bad ## check + the package in Node and Chromium + a sample of the oracle + bad input

test-package: build ## The built package and the page, in Node and in Chromium
	@scripts/setup.sh chromium
	npm run --silent test:package

test-oracle: package ## What we write, read back by Lance (a seeded sample)
	@scripts/setup.sh python chromium
	scripts/pytest.sh tests/oracle

test-bad: package ## Broken tables and broken servers, through the command
	@scripts/setup.sh python
	scripts/pytest.sh tests/bad

test-stores: package ## Real object servers: what each does, and which are refused for commits (installs them once)
	@scripts/store-servers.sh
	scripts/pytest.sh tests/stores -s

test-all: check test-package test-stores ## Everything, with the full matrices (long)
	@scripts/setup.sh python chromium
	WHETSTONE_FULL=1 cargo test --locked --test column_matrix -- --nocapture
	WHETSTONE_FULL=1 scripts/pytest.sh tests/oracle tests/bad

bench: package ## Refresh, building and decoding speed against Lance on this machine; forecasts of a million fragments; reuse histories
	@scripts/setup.sh python
	@scripts/python.sh tests/bench/refresh.py
	@scripts/python.sh tests/bench/methods.py
	@scripts/python.sh tests/bench/decode.py
	@scripts/python.sh tests/bench/forecast.py
	@scripts/python.sh tests/bench/histories.py

simulate: ## Commits under races and faults, in virtual time, optimised (SEEDS=100000 runs, from FIRST=0)
	@scripts/setup.sh native
	CARGO_PROFILE_QUICK_DEBUG_ASSERTIONS=true CARGO_PROFILE_QUICK_OVERFLOW_CHECKS=true CARGO_PROFILE_QUICK_INCREMENTAL=false \
	WHETSTONE_SIM_FIRST=$(or $(FIRST),0) WHETSTONE_SIM_SEEDS=$(or $(SEEDS),100000) RUST_BACKTRACE=0 \
	cargo test --locked --profile quick --test simulation -- --nocapture whatever

fuzz: ## Feed every parser of foreign bytes (FUZZ_RUNS=200000 inputs each)
	@scripts/fuzz.sh $(or $(FUZZ_RUNS),200000)

fmt: ## Format the Rust sources
	cargo fmt

setup: ## Install everything that is missing, build nothing
	@scripts/setup.sh

wasm:
	@scripts/build-wasm.sh

core:
	@scripts/build-wasm.sh core

package: wasm
	@scripts/build-js.sh package

samples: ## Make the sample tables of `make start` again
	@scripts/setup.sh python
	@scripts/samples.sh --again
