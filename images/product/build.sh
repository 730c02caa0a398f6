#!/bin/sh
# Builds the container image of ewan itself, loads it into the engine that is there, and prints its name; --archive only
# makes the archive. The work is done by build.py beside this.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
kept=$(kept images)
PYTHONPATH="$root" PYTHONDONTWRITEBYTECODE=1 exec "$root/.venv/bin/python" -P -m images.product.build --kept "$kept" "$@"
