#!/usr/bin/env bash
# Installs what is missing, and only that: setup.sh [native] [wasm] [node] [python] [chromium]; without arguments, everything.
# Each part leaves a stamp or can be seen to be there, so a second run takes a second.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

setup_native() {
  have cargo || die "cargo is needed (Rust 1.95 or newer, from rustup): install it, then run this again"
  have cc || apt_install gcc libc6-dev
  have xz || apt_install xz-utils
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy </dev/null >&2
}

setup_wasm() {
  setup_native
  if [ -z "$(wasm_compiler)" ]; then
    # Offline this has to fail within seconds, not after every retry of every mirror.
    say "adding the wasm32 target to the Rust toolchain"
    if ! { have rustup && RUSTUP_MAX_RETRIES=0 timeout 180 rustup target add "$TRIPLE" </dev/null >&2 && rustup_has_target; }; then
      say "rustup could not add it: falling back to Debian's browser compiler with the standard library built from source"
      apt_install rustc-web cargo-web rust-web-src rust-web-llvm
    fi
    [ -n "$(wasm_compiler)" ] || die "no compiler for $TRIPLE: neither 'rustup target add $TRIPLE' nor Debian's rustc-web gave one"
  fi
  [ -n "$(wasm_linker)" ] || apt_install lld
  if [ "$("$TOOLS/bin/wasm-bindgen" --version 2>/dev/null || true)" != "wasm-bindgen $WASM_BINDGEN_VERSION" ]; then
    say "building wasm-bindgen $WASM_BINDGEN_VERSION (three to five minutes, once)"
    # With the versions its authors tested; a mirror of the registry that is days behind may lack one of them, and its own choice then serves.
    bindgen() { CARGO_TARGET_DIR="$CACHE/tools-target" cargo install wasm-bindgen-cli --version "$WASM_BINDGEN_VERSION" "$@" --root "$TOOLS" </dev/null >&2; }
    bindgen --locked || bindgen
    rm -rf "$CACHE/tools-target"
  fi
}

setup_node() {
  have node && have npm || die "Node 20 or newer with npm is needed: install it, then run this again"
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || die "Node 20 or newer is needed, this is $(node --version)"
  local want; want="$(hash_of package-lock.json package.json pkg/package.json .npmrc) $(node --version)"
  if ! stamped "$ROOT/node_modules/.whetstone-stamp" "$want"; then
    say "installing node modules"
    (cd "$ROOT" && npm ci --no-audit --no-fund </dev/null >&2)
    echo "$want" > "$ROOT/node_modules/.whetstone-stamp"
  fi
}

setup_python() {
  local requirements="$ROOT/scripts/requirements.txt" want
  have python3 || die "Python 3.11 or newer is needed: install it, then run this again"
  want="$(sha256sum < "$requirements" | cut -d' ' -f1)"
  stamped "$VENV/.whetstone-stamp" "$want" && [ -x "$VENV/bin/python" ] && return
  if [ ! -x "$VENV/bin/pip" ]; then
    say "making a Python environment"
    python3 -m venv "$VENV" >&2 || { rm -rf "$VENV"; apt_install python3-venv; python3 -m venv "$VENV" >&2; }
  fi
  say "installing pylance, pyarrow, pytest, moto"
  "$VENV/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" </dev/null >&2
  echo "$want" > "$VENV/.whetstone-stamp"
}

setup_chromium() {
  have chromium || have chromium-browser || have google-chrome || apt_install chromium fonts-dejavu-core
}

[ $# -gt 0 ] || set -- wasm node python chromium
for part in "$@"; do
  case "$part" in
    native|wasm|node|python|chromium) "setup_$part" ;;
    *) die "setup.sh: unknown part '$part'" ;;
  esac
done
