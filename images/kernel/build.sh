#!/bin/sh
# Builds the virtual kernel if needed and prints its path; --path and --last only print one. The work is done by build.py.
command -v python3 >/dev/null || { echo "kernel: python3 is missing: apt install python3" >&2; exit 2; }
exec python3 "$(dirname "$0")/build.py" "$@"
