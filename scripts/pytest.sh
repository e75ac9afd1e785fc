#!/usr/bin/env bash
# Runs pytest in the project's environment: pytest.sh PATHS [OPTIONS]
exec "$(dirname "${BASH_SOURCE[0]}")/python.sh" -m pytest -p no:cacheprovider -q -ra --durations=5 "$@"
