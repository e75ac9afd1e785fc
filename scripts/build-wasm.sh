#!/usr/bin/env bash
# Builds the engine: cargo -> wasm-bindgen, into pkg/dist. Does nothing when no source changed.
# WASM_PROFILE=quick leaves out link-time optimisation: for the edit-build-test loop.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" wasm

PROFILE="${WASM_PROFILE:-release}"
OUT="$ROOT/pkg/dist"
COMPILER="$(wasm_compiler)"
STAMP="$(hash_of src Cargo.toml Cargo.lock scripts/build-wasm.sh) $PROFILE $COMPILER"
if stamped "$OUT/.wasm-stamp" "$STAMP" && [ -f "$OUT/whetstone_bg.wasm" ]; then exit 0; fi
case "$PROFILE" in release|quick) ;; *) die "WASM_PROFILE is 'release' or 'quick', not '$PROFILE'" ;; esac

say "building the engine for wasm ($PROFILE, $COMPILER compiler)"
# The target folder is shared by all checkouts, and the artifact has one name: hold it from compiling to copying.
mkdir -p "$WASM_TARGET"
exec 9>"$WASM_TARGET/whetstone.lock"
flock 9
build=(rustc --lib --locked --profile "$PROFILE" --target "$TRIPLE")
case "$COMPILER" in
  rustup) cargo=(env cargo) ;;
  debian)
    cargo=(env RUSTC="$(debian_tool rustc-web rustc)" RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$(wasm_linker)" "$(debian_tool cargo-web cargo)")
    build+=(-Z build-std=std,panic_abort) ;;
  *) die "no compiler for $TRIPLE: run scripts/setup.sh wasm" ;;
esac
# What is not marked for inlining stays a call: 40 KB less to download, and the hot loops, which are marked, are as fast.
codegen=()
if [ "$PROFILE" = release ]; then codegen=(-C llvm-args=-inline-threshold=0); fi
(cd "$ROOT" && RUSTFLAGS="$WASM_FLAGS" CARGO_TARGET_DIR="$WASM_TARGET" "${cargo[@]}" "${build[@]}" -- "${codegen[@]}" </dev/null >&2)

mkdir -p "$OUT"
staging="$(mktemp -d "$OUT/.staging.XXXXXX")"
trap 'rm -rf "$staging"' EXIT
# No wasm-opt: on top of link-time optimisation its output is a tenth larger once compressed (tried: -O1, -Os, -Oz, -O3).
strip=()
if [ "$PROFILE" = release ]; then strip=(--remove-name-section --remove-producers-section); fi
"$TOOLS/bin/wasm-bindgen" "$WASM_TARGET/$TRIPLE/$PROFILE/whetstone.wasm" --target web --out-dir "$staging" --out-name whetstone "${strip[@]}"
flock -u 9
mv "$staging"/* "$OUT/"
echo "$STAMP" > "$OUT/.wasm-stamp"
