#!/usr/bin/env bash
# Builds the engine: cargo -> wasm-bindgen -> wasm-opt, into pkg/dist. Does nothing when no source changed.
# WASM_PROFILE=quick leaves out link-time optimisation and wasm-opt: for the edit-build-test loop.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" wasm

PROFILE="${WASM_PROFILE:-release}"
OUT="$ROOT/pkg/dist"
COMPILER="$(wasm_compiler)"
STAMP="$(hash_of src Cargo.toml Cargo.lock scripts/build-wasm.sh) $PROFILE $COMPILER"
if stamped "$OUT/.wasm-stamp" "$STAMP" && [ -f "$OUT/whetstone_bg.wasm" ]; then exit 0; fi
case "$PROFILE" in release|quick) ;; *) die "WASM_PROFILE is 'release' or 'quick', not '$PROFILE'" ;; esac
if [ "$PROFILE" = release ]; then "$ROOT/scripts/setup.sh" node; fi

say "building the engine for wasm ($PROFILE, $COMPILER compiler)"
# The target folder is shared by all checkouts, and the artifact has one name: hold it from compiling to copying.
mkdir -p "$WASM_TARGET"
exec 9>"$WASM_TARGET/whetstone.lock"
flock 9
build=(build --lib --locked --profile "$PROFILE" --target "$TRIPLE")
case "$COMPILER" in
  rustup) cargo=(env cargo) ;;
  debian)
    cargo=(env RUSTC="$(debian_tool rustc-web rustc)" RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$(wasm_linker)" "$(debian_tool cargo-web cargo)")
    build+=(-Z build-std=std,panic_abort) ;;
  *) die "no compiler for $TRIPLE: run scripts/setup.sh wasm" ;;
esac
(cd "$ROOT" && RUSTFLAGS="$WASM_FLAGS" CARGO_TARGET_DIR="$WASM_TARGET" "${cargo[@]}" "${build[@]}" </dev/null >&2)

mkdir -p "$OUT"
staging="$(mktemp -d "$OUT/.staging.XXXXXX")"
trap 'rm -rf "$staging"' EXIT
"$TOOLS/bin/wasm-bindgen" "$WASM_TARGET/$TRIPLE/$PROFILE/whetstone.wasm" --target web --out-dir "$staging" --out-name whetstone
flock -u 9
if [ "$PROFILE" = release ]; then
  say "optimising the engine"
  "$ROOT/node_modules/.bin/wasm-opt" -O3 --enable-simd --enable-bulk-memory --enable-bulk-memory-opt --enable-nontrapping-float-to-int \
    --enable-sign-ext --enable-mutable-globals --enable-reference-types --enable-multivalue --strip-debug --strip-producers \
    -o "$staging/optimised.wasm" "$staging/whetstone_bg.wasm"
  mv "$staging/optimised.wasm" "$staging/whetstone_bg.wasm"
fi
mv "$staging"/* "$OUT/"
echo "$STAMP" > "$OUT/.wasm-stamp"
