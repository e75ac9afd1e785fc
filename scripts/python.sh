#!/usr/bin/env bash
# Runs Python in the project's environment: python.sh FILE [ARGUMENTS]
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
export WHETSTONE_CACHE="$CACHE" PYTHONDONTWRITEBYTECODE=1
exec "$VENV/bin/python" "$@"
