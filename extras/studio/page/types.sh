#!/bin/sh
# Writes the types of the server's interface, of the OpenAPI that it describes itself by, into FILE or src/server.ts.
# The generator is kept in the cache that clones share; --install installs it alone. Needs Node.js 18, npm and .venv.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
. "$root/images/cache.sh"
page=$root/extras/studio/page
command -v npm >/dev/null || { echo "studio: npm is missing: install Node.js (Debian: apt install nodejs npm)" >&2; exit 2; }
generator=$(kept studio-types)/$(digest "$page/types/package-lock.json" | cut -c-16)
if [ ! -e "$generator" ]; then
    work=$(mktemp -d "$generator.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp "$page/types/package.json" "$page/types/package-lock.json" "$work/"
    (cd "$work" && npm ci --no-audit --no-fund --loglevel=error >&2)
    mv -T "$work" "$generator" 2>/dev/null || [ -e "$generator" ]
fi
[ "${1-}" != --install ] || exit 0
cd "$root"
.venv/bin/python -c 'import json; from ewan.extras.studio.server import app; print(json.dumps(app.interface()))' |
    "$generator/node_modules/.bin/openapi-typescript" --root-types --root-types-no-schema-prefix --root-types-keep-casing \
        --default-non-nullable false --output "${1-$page/src/server.ts}" >&2
