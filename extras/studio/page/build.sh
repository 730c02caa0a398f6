#!/bin/sh
# Builds the page of studio if needed, in the cache that clones share, and prints the directory of page/ and tests/. Needs Node.js 18 and npm.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
. "$root/images/cache.sh"
command -v npm >/dev/null && command -v node >/dev/null ||
    { echo "studio: Node.js is missing: install version 18 or newer (Debian: apt install nodejs npm)" >&2; exit 2; }
cd "$root/extras/studio/page"
key=$(find build.mjs package-lock.json src -type f -exec sha256sum {} + | sort | sha256sum | cut -c-16)
built=$(kept studio)/$key
if [ ! -e "$built/page/index.html" ]; then
    echo "studio: building the page (half a minute, once)" >&2
    work=$(mktemp -d "$built.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp -r build.mjs package.json package-lock.json src "$work/"
    (cd "$work" && npm ci --omit=optional --no-audit --no-fund --loglevel=error >npm.log 2>&1 && node build.mjs page) ||
        { cat "$work/npm.log" >&2; echo "studio: the page could not be built (see above)" >&2; exit 2; }
    mkdir "$work/built"
    mv "$work/page" "$work/tests" "$work/built/"
    mv -T "$work/built" "$built" 2>/dev/null || [ -e "$built/page/index.html" ]
fi
mkdir -p "$root/target"
[ "$(readlink "$root/target/studio" 2>/dev/null || true)" = "$built" ] || ln -sfn "$built" "$root/target/studio"
echo "$built"
