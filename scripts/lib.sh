# Sourced by the other scripts: where things are kept, and the few helpers all of them need.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
CACHE="${WHETSTONE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/whetstone}"
TOOLS="$CACHE/tools"
VENV="$CACHE/venv"
WASM_TARGET="$CACHE/target-wasm"
TRIPLE="wasm32-unknown-unknown"
WASM_FLAGS='--cfg getrandom_backend="wasm_js" -C target-feature=+simd128'
# Must equal the version of the wasm-bindgen crate in Cargo.lock: the two speak a private protocol.
WASM_BINDGEN_VERSION="$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"$/\1/p;}' "$ROOT/Cargo.lock")"

mkdir -p "$CACHE"
command -v cargo >/dev/null 2>&1 || PATH="$HOME/.cargo/bin:$PATH"
export PATH

say() { printf '\033[2m[whetstone]\033[0m %s\n' "$*" >&2; }
die() { printf '[whetstone] %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# One hash over the names and contents of files and folders; generated folders are left out.
hash_of() {
  (cd "$ROOT" && find "$@" \( -name node_modules -o -name dist -o -name target -o -name __pycache__ -o -name artifacts \) -prune -o -type f -print0 2>/dev/null \
    | LC_ALL=C sort -z | xargs -0 -r sha256sum) | sha256sum | cut -d' ' -f1
}

# stamped FILE VALUE: is VALUE what FILE holds? A stamp is written only after the work succeeded.
stamped() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo && sudo -n true 2>/dev/null; then sudo "$@"
  else return 77
  fi
}

apt_updated=""
# apt_install PACKAGES: installs Debian packages, or says in one sentence what a person has to do.
apt_install() {
  have apt-get || die "this machine has no apt-get: please install these packages (or what they are called here) and run again: $*"
  say "installing Debian packages: $*"
  local status=0
  if [ -z "$apt_updated" ]; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null >&2 || status=$?
    apt_updated=yes
  fi
  [ "$status" = 77 ] || as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >&2 || status=$?
  [ "$status" != 77 ] || die "not running as root and sudo needs a password: please run 'apt-get install -y $*' as root once, then run this again"
  [ "$status" = 0 ] || die "apt-get could not install: $* (see its message above)"
}

# The compiler that Debian ships for building browsers: it comes with the library sources that -Z build-std needs.
debian_tool() { dpkg-query -L "$1" 2>/dev/null | grep -m1 "/bin/$2\$" || true; }

rustup_has_target() {
  have rustc || return 1
  [ -d "$(rustc --print sysroot)/lib/rustlib/$TRIPLE/lib" ]
}

# Prints which compiler can build for wasm: rustup, debian, or nothing.
wasm_compiler() {
  if rustup_has_target; then echo rustup
  elif [ -n "$(debian_tool rustc-web rustc)" ] && [ -n "$(debian_tool cargo-web cargo)" ] && dpkg-query -W rust-web-src >/dev/null 2>&1; then echo debian
  fi
}

# A linker for wasm: the one inside rustup's toolchain, else one of Debian's.
wasm_linker() {
  local sysroot candidate
  if have rustc; then
    sysroot="$(rustc --print sysroot)"
    for candidate in "$sysroot"/lib/rustlib/*/bin/rust-lld; do
      [ -x "$candidate" ] && { echo "$candidate"; return; }
    done
  fi
  for candidate in rust-lld wasm-ld wasm-ld-22 wasm-ld-19; do
    have "$candidate" && { command -v "$candidate"; return; }
  done
}
