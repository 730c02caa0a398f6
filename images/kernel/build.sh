#!/bin/sh
# Builds the virtual kernel if needed and prints its path; --path and --last only print one. The first word --debug means
# the kernel that watches itself, --counting the one by which make_profile.py makes a profile; each has a tree of its own. The
# work is done by build.py.
set -eu
command -v python3 >/dev/null || { echo "kernel: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
case ${1-} in --debug) kind=kernel-debug ;; --counting) kind=kernel-counting ;; *) kind=kernel ;; esac
target=$(kept $kind) common=$(shared $kind)
exec python3 "$root/images/kernel/build.py" --target "$target" ${common:+--shared "$common"} "$@"
