#!/usr/bin/env bash
# Makes the sample tables once (in the cache) and prints the folder that holds them. --again makes them anew.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
want="$(hash_of tests/samples scripts/requirements.txt)"
if [ "${1:-}" = --again ] || ! stamped "$CACHE/samples/.stamp" "$want"; then
  say "making the sample tables"
  rm -rf "$CACHE/samples.new"
  "$ROOT/scripts/python.sh" "$ROOT/tests/samples/make_samples.py" "$CACHE/samples.new" >&2
  echo "$want" > "$CACHE/samples.new/.stamp"
  rm -rf "$CACHE/samples"
  mv "$CACHE/samples.new" "$CACHE/samples"
fi
echo "$CACHE/samples"
