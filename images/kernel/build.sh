#!/bin/sh
# Builds the virtual kernel if needed and prints its path; --path and --last only print one. The work is done by build.py.
set -eu
command -v python3 >/dev/null || { echo "kernel: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
target=$(kept kernel)
exec python3 "$root/images/kernel/build.py" --target "$target" "$@"
