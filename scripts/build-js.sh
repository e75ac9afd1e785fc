#!/usr/bin/env bash
# Compiles the package (js/ -> pkg/dist) and the page (www/ -> www/dist). Does nothing when no source changed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" node
cd "$ROOT"

WASM="$(cat pkg/dist/.wasm-stamp 2>/dev/null || true)"
[ -n "$WASM" ] || die "build the engine first: scripts/build-wasm.sh"
PACKAGE="$(hash_of js pkg/package.json package-lock.json package.json tsconfig.json js/tsconfig.json scripts/build-js.sh) $WASM"
if ! stamped pkg/dist/.js-stamp "$PACKAGE"; then
  say "building the package"
  npm run --silent build:js </dev/null >&2
  echo "$PACKAGE" > pkg/dist/.js-stamp
fi
[ "${1:-}" != package ] || exit 0
PAGE="$(hash_of www webpack.config.js tsconfig.json) $PACKAGE"
if ! stamped www/dist/.stamp "$PAGE"; then
  say "building the page"
  npm run --silent build:page </dev/null >&2
  echo "$PAGE" > www/dist/.stamp
fi
