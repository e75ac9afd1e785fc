#!/usr/bin/env bash
# Lints the code that exists only for wasm (src/js, the fetch connector). Debian's compiler brings no clippy: there the build is the check.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
if [ "$(wasm_compiler)" = rustup ]; then
  RUSTFLAGS="$WASM_FLAGS" CARGO_TARGET_DIR="$WASM_TARGET" cargo clippy --lib --locked --target "$TRIPLE" -- -D warnings
  RUSTFLAGS="$WASM_FLAGS" CARGO_TARGET_DIR="$WASM_TARGET" cargo clippy --lib --locked --no-default-features --target "$TRIPLE" -- -D warnings
else
  say "no clippy for the wasm target with this compiler; its warnings show in the build"
fi
