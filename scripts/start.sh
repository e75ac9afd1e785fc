#!/usr/bin/env bash
# Serves the page and a writable scratch copy of the sample tables; ends with Ctrl-C.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
samples="$("$ROOT/scripts/samples.sh")"
scratch="$(mktemp -d "${TMPDIR:-/tmp}/whetstone-start.XXXXXX")"
server=""
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 0' INT TERM
# A copy: whoever plays with the samples has them fresh again by starting anew.
mkdir "$scratch/samples"
cp -R "$samples/." "$scratch/samples/"
rm -f "$scratch/samples/.stamp"
cd "$ROOT"
port="${PORT:-8080}"
if [ -z "${PORT:-}" ] && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then port=0; fi # taken: any free one
node pkg/bin/whetstone.js serve "$scratch" --page www/dist --writable --port "$port" </dev/null &
server=$!
# In the background, so that a signal ends it at once and the scratch copy with it.
wait "$server"
