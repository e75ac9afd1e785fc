#!/usr/bin/env bash
# Builds an engine: cargo -> wasm-bindgen, into the package. `build-wasm.sh` builds the full one (pkg/dist), `build-wasm.sh core`
# the core one (pkg/dist/core); the core one costs one more compilation of this crate, no dependencies. Does nothing when no
# source changed. WASM_PROFILE=quick leaves out link-time optimisation: for the edit-build-test loop.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" wasm

ENGINE="${1:-full}"
PROFILE="${WASM_PROFILE:-release}"
case "$ENGINE" in
  full) OUT="$ROOT/pkg/dist" features=() ;;
  core) OUT="$ROOT/pkg/dist/core" features=(--no-default-features) ;;
  *) die "there is a full engine and a core engine, no '$ENGINE'" ;;
esac
case "$PROFILE" in release|quick) ;; *) die "WASM_PROFILE is 'release' or 'quick', not '$PROFILE'" ;; esac
COMPILER="$(wasm_compiler)"
STAMP="$(hash_of src Cargo.toml Cargo.lock scripts/build-wasm.sh scripts/pack-wasm.mjs) $PROFILE $COMPILER"
if stamped "$OUT/.wasm-stamp" "$STAMP" && [ -f "$OUT/whetstone_bg.wasm" ]; then exit 0; fi

say "building the $ENGINE engine for wasm ($PROFILE, $COMPILER compiler)"
# The target folder is shared by all checkouts, and the artifact has one name: hold it from compiling to copying.
mkdir -p "$WASM_TARGET"
exec 9>"$WASM_TARGET/whetstone.lock"
flock 9
# Cargo takes sources that are older than what it built last for built, although that was another checkout.
BUILT="$WASM_TARGET/whetstone-$PROFILE.built"
stamped "$BUILT" "$ENGINE $STAMP" || touch "$ROOT/src/lib.rs"
rm -f "$BUILT"
build=(rustc --lib --locked --profile "$PROFILE" --target "$TRIPLE" "${features[@]}")
case "$COMPILER" in
  rustup) cargo=(env cargo) ;;
  debian)
    cargo=(env RUSTC="$(debian_tool rustc-web rustc)" RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$(wasm_linker)" "$(debian_tool cargo-web cargo)")
    build+=(-Z build-std=std,panic_abort) ;;
  *) die "no compiler for $TRIPLE: run scripts/setup.sh wasm" ;;
esac
flags=($WASM_FLAGS)
codegen=()
if [ "$PROFILE" = release ]; then
  case "$ENGINE" in
    # What is not marked for inlining stays a call: 40 KB less to download, and the hot loops, which are marked, are as fast.
    full) codegen=(-C llvm-args=-inline-threshold=0) ;;
    # For size: building takes a fifth (numbers) to a half (strings) more processor time than in the full engine. With `s` it is
    # a third at most, and 50 KB more.
    core) codegen=(-C opt-level=z) ;;
  esac
  # Places of panics name source files: not where they lie on this machine. (Our own are relative as they are.) The folders that
  # have to be named are there once the sources are.
  (cd "$ROOT" && "${cargo[@]}" fetch --locked --target "$TRIPLE" </dev/null >&2)
  for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do flags+=("--remap-path-prefix=$registry="); done
fi
encoded="$(printf '%s\x1f' "${flags[@]}")"
(cd "$ROOT" && CARGO_ENCODED_RUSTFLAGS="${encoded%$'\x1f'}" CARGO_TARGET_DIR="$WASM_TARGET" "${cargo[@]}" "${build[@]}" -- "${codegen[@]}" </dev/null >&2)

mkdir -p "$OUT"
staging="$(mktemp -d "$OUT/.staging.XXXXXX")"
trap 'rm -rf "$staging"' EXIT
# No wasm-opt: on top of link-time optimisation its output is a tenth larger once compressed (tried: -O1, -Os, -Oz, -O3).
echo "$ENGINE $STAMP" > "$BUILT"
"$TOOLS/bin/wasm-bindgen" "$WASM_TARGET/$TRIPLE/$PROFILE/whetstone.wasm" --target web --out-dir "$staging" --out-name whetstone
flock -u 9
if [ "$PROFILE" = release ]; then
  node "$ROOT/scripts/pack-wasm.mjs" "$staging/whetstone_bg.wasm" "$staging/whetstone_bg.wasm"
  ! grep -qaF "${CARGO_HOME:-$HOME/.cargo}" "$staging/whetstone_bg.wasm" || die "the engine names folders of this machine"
fi
mv "$staging"/* "$OUT/"
echo "$STAMP" > "$OUT/.wasm-stamp"
