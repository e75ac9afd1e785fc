#!/usr/bin/env bash
# Fuzzes every parser of foreign bytes, one process at a time: fuzz.sh [RUNS] [PARSER…]. Corpora are kept in the cache.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" native

RUNS="${1:-200000}"
[ $# -eq 0 ] || shift
FUZZ="$CACHE/fuzz"
CARGO_FUZZ_VERSION=0.13.2
if [ "$("$TOOLS/bin/cargo-fuzz" --version 2>/dev/null || true)" != "cargo-fuzz $CARGO_FUZZ_VERSION" ]; then
  say "building cargo-fuzz $CARGO_FUZZ_VERSION (once)"
  CARGO_TARGET_DIR="$CACHE/tools-target" cargo install cargo-fuzz --version "$CARGO_FUZZ_VERSION" --locked --root "$TOOLS" </dev/null >&2
  rm -rf "$CACHE/tools-target"
fi
# libFuzzer's instrumentation is not stable, though it works on every stable compiler that is told to allow it.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$FUZZ/target" PATH="$TOOLS/bin:$PATH"
cd "$ROOT"
[ $# -gt 0 ] || mapfile -t parsers < <(cd fuzz/fuzz_targets && ls | sed 's/\.rs$//')
[ $# -eq 0 ] || parsers=("$@")
# Our code holds no unsafe block: the address sanitizer would only make it slower.
cargo fuzz build -s none >&2

want="$(sha256sum < tests/data/lance-fixtures.tar.xz | cut -d' ' -f1) $(hash_of tests/support/parsers.rs tests/support/seeds.rs) ${FUZZ_SEEDS:-}"
if ! stamped "$FUZZ/.seeds-stamp" "$want"; then
  say "cutting the first inputs out of the fixture tables"
  # FUZZ_SEEDS lists more folders of Lance files, e.g. what tests/oracle/make_columns.py writes.
  env -u CARGO_TARGET_DIR -u RUSTC_BOOTSTRAP FUZZ_CORPUS="$FUZZ/corpus" cargo test --quiet --locked --test mutated_files -- --ignored write_first_inputs >&2
  echo "$want" > "$FUZZ/.seeds-stamp"
fi

mkdir -p "$FUZZ/logs"
failed=()
for parser in "${parsers[@]}"; do
  mkdir -p "$FUZZ/corpus/$parser" "$FUZZ/artifacts/$parser"
  say "$parser: $RUNS inputs"
  log="$FUZZ/logs/$parser.log"
  if "$FUZZ"/target/*/release/"$parser" "$FUZZ/corpus/$parser" -runs="$RUNS" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -max_len=49152 -artifact_prefix="$FUZZ/artifacts/$parser/" -print_final_stats=1 > "$log" 2>&1; then
    sed -n 's/^stat::number_of_executed_units: */  executed /p; s/^stat::peak_rss_mb: */  peak MB  /p' "$log" >&2
  else
    tail -30 "$log" >&2
    failed+=("$parser")
  fi
done
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]} (inputs in $FUZZ/artifacts)"
