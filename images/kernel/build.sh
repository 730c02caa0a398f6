#!/bin/sh
# Builds the virtual kernel if needed and prints its path; --path and --last only print one; --debug, the first word, means
# the kernel that watches itself, which has a tree of its own. The work is done by build.py.
set -eu
command -v python3 >/dev/null || { echo "kernel: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
case ${1-} in --debug) target=$(kept kernel-debug) ;; *) target=$(kept kernel) ;; esac
exec python3 "$root/images/kernel/build.py" --target "$target" "$@"
