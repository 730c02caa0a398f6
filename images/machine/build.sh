#!/bin/sh
# Builds what a machine of a lab boots, if needed, and prints where it is: `build.sh [debian-12]`. The work is done by
# build.py.
set -eu
command -v python3 >/dev/null || { echo "machine: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
name=${1:-debian-12}
target=$root/target/machine/$name
kept=$(kept machines)
cd "$root"
python3 -m images.machine.build "$name" "$kept" "$target"
echo "$target"
