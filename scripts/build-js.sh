#!/usr/bin/env bash
# Compiles the package (js/ -> pkg/dist, and once more beside the core engine: pkg/dist/core) and the page (www/ -> www/dist); `build-js.sh package` stops after the first.
# Does nothing when no source changed. Only the page needs the engine: it carries a copy.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" node
cd "$ROOT"

PACKAGE="$(hash_of js pkg/package.json package-lock.json package.json tsconfig.json tsconfig.core.json tsconfig.base.json scripts/build-js.sh)"
if ! stamped pkg/dist/.js-stamp "$PACKAGE" || [ ! -f pkg/dist/node.js ]; then
  say "building the package"
  npm run --silent build:js </dev/null >&2
  echo "$PACKAGE" > pkg/dist/.js-stamp
fi
[ "${1:-}" != package ] || exit 0

ENGINE="$(cat pkg/dist/.wasm-stamp 2>/dev/null || true)"
[ -n "$ENGINE" ] || die "build the engine first: scripts/build-wasm.sh"
PAGE="$(hash_of www webpack.config.js docs scripts/docs-pages.mjs scripts/docs-references.mjs) $PACKAGE $ENGINE"
if ! stamped www/dist/.stamp "$PAGE" || [ ! -f www/dist/index.html ]; then
  say "building the page"
  npm run --silent build:page </dev/null >&2
  node scripts/docs-pages.mjs </dev/null >&2
  echo "$PAGE" > www/dist/.stamp
fi
