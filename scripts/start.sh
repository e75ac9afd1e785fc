#!/usr/bin/env bash
# Serves the page and a writable scratch copy of the sample tables; ends with Ctrl-C.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
samples="$("$ROOT/scripts/samples.sh")"
scratch="$(mktemp -d "${TMPDIR:-/tmp}/whetstone-start.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
# A copy: whoever plays with the samples can have them fresh again by starting anew.
mkdir "$scratch/samples"
cp -R "$samples/." "$scratch/samples/"
rm -f "$scratch/samples/.stamp"
cd "$ROOT"
node pkg/bin/whetstone.js serve "$scratch" --page www/dist --writable --port "${PORT:-8080}"
