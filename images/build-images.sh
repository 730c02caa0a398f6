#!/bin/sh
# Builds the container images if needed, loads them into the engine that is there, and prints their names; --archives
# only makes the archives. The work is done by container/build.py.
set -eu
command -v python3 >/dev/null || { echo "images: python3 is missing: apt install python3" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/images/cache.sh"
kept=$(kept images)
PYTHONPATH="$root" PYTHONDONTWRITEBYTECODE=1 exec python3 -P -m images.container.build --kept "$kept" "$@"
