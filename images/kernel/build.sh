#!/bin/sh
# Builds the virtual kernel if needed and prints its path; --path and --last only print one. The first word --debug means
# the kernel that watches itself, --counting the one by which make_profile.py makes a profile; each has a tree of its own. The
# work is done by build.py.
set -eu
command -v python3 >/dev/null || { echo "kernel: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
case ${1-} in --debug) kind=kernel-debug ;; --counting) kind=kernel-counting ;; *) kind=kernel ;; esac
target=$(kept $kind) common=$(shared $kind) own=$(cache_directory)
# A cache that this user may only read is one that somebody else keeps.
if [ -z "$common" ] && [ -n "$own" ] && [ "$target" != "$own/$kind" ]; then common=$(EWAN_SHARED_CACHE=$own shared $kind); fi
if [ $kind = kernel ] && [ ! -e "$target/cache/source" ] && ls "$target"/????????????????/linux >/dev/null 2>&1; then
    PYTHONPATH=$root python3 -P -m images.kernel.recall "$target"
fi
exec python3 "$root/images/kernel/build.py" --target "$target" ${common:+--shared "$common"} "$@"
