#!/usr/bin/env bash
# Fuzzes every parser of foreign bytes, one process at a time: fuzz.sh [RUNS] [TARGET…]. Corpora are kept in the cache.
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
# Our code holds no unsafe block: the address sanitizer would only make it slower.
cargo fuzz build -s none >&2

# The first inputs: files of the fixture tables, and a column of each kind written by Lance. FUZZ_SEEDS lists more folders.
want="$(hash_of tests/data tests/support tests/oracle/make_columns.py fuzz/examples) ${FUZZ_SEEDS:-}"
if ! stamped "$FUZZ/.seeds-stamp" "$want"; then
  say "cutting the first inputs out of the fixture tables and of columns written by Lance"
  rm -rf "$FUZZ/tables" "$FUZZ/columns"
  mkdir -p "$FUZZ/tables"
  tar xJf tests/data/lance-fixtures.tar.xz -C "$FUZZ/tables"
  "$ROOT/scripts/setup.sh" python
  "$ROOT/scripts/python.sh" tests/oracle/make_columns.py "$FUZZ/columns"
  IFS=: read -ra more <<< "${FUZZ_SEEDS:-}"
  env -u RUSTC_BOOTSTRAP cargo run --quiet --locked --manifest-path fuzz/Cargo.toml --example seeds -- \
    "$FUZZ/corpus" "$FUZZ/tables/fixtures" "$FUZZ/columns" "${more[@]}" >&2
  echo "$want" > "$FUZZ/.seeds-stamp"
fi
# A page of any encoding is one target; it runs once for every row of the coverage table, from inputs of that encoding.
parsers=("$@")
if [ $# -eq 0 ]; then
  mapfile -t parsers < <(cd fuzz/fuzz_targets && ls | sed 's/\.rs$//'; cd "$FUZZ/corpus" && ls -d page.*)
fi

mkdir -p "$FUZZ/logs"
failed=()
for parser in "${parsers[@]}"; do
  mkdir -p "$FUZZ/corpus/$parser" "$FUZZ/artifacts/$parser"
  say "$parser: $RUNS inputs"
  log="$FUZZ/logs/$parser.log"
  if "$FUZZ"/target/*/release/"${parser%%.*}" "$FUZZ/corpus/$parser" -runs="$RUNS" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -max_len="$([[ "$parser" = page.* ]] && echo 24576 || echo 49152)" -artifact_prefix="$FUZZ/artifacts/$parser/" -print_final_stats=1 > "$log" 2>&1; then
    sed -n 's/^stat::number_of_executed_units: */  executed /p; s/^stat::peak_rss_mb: */  peak MB  /p' "$log" >&2
  else
    tail -30 "$log" >&2
    failed+=("$parser")
  fi
done
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]} (inputs in $FUZZ/artifacts)"
