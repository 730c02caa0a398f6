#!/bin/sh
# Types, lint and format of the page, with the tools of its lock file, which are installed once beside it.
set -eu
cd "$(dirname "$0")"
command -v npm >/dev/null || { echo "studio: npm is missing: install Node.js 18 or newer (Debian: apt install nodejs npm)" >&2; exit 2; }
lock=$(sha256sum package-lock.json | cut -c-16)
if [ "$(cat node_modules/.lock-hash 2>/dev/null || true)" != "$lock" ]; then
    npm ci --no-audit --no-fund --loglevel=error >&2
    echo "$lock" >node_modules/.lock-hash
fi
npm run --silent check
