#!/bin/sh
# Builds ewan-quic-go if needed and prints its path: a program without shared libraries, which runs in every node's root.
# Needs Go; the versions of its libraries are those of go.mod, and what comes is checked against go.sum.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
oldest=1.22.1
command -v go >/dev/null || { echo "quic: Go is missing: install Go $oldest or newer from go.dev" >&2; exit 2; }
cd "$here/go"
# An older Go than go.mod asks for fetches that one.
version=$(go version) || { echo "quic: go version failed (see above): install Go $oldest or newer from go.dev" >&2; exit 2; }
key=$({ cat "$here/go.sh" go.mod go.sum ./*.go; echo "$version"; } | sha256sum | cut -c-16)
made=$(kept quic)/$key/ewan-quic-go
if ! whole "$made"; then
    echo "setup: building ewan-quic-go (about half a minute, once)" >&2
    mkdir -p "${made%/*}"
    GOFLAGS=-mod=readonly CGO_ENABLED=0 nice go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$made.$$" . ||
        { echo "quic: go build failed (see above)" >&2; exit 2; }
    mv "$made.$$" "$made"
    note "$made"
fi
program=$root/target/release/ewan-quic-go
mkdir -p "${program%/*}"
cmp -s "$made" "$program" || { cp "$made" "$program.$$" && mv "$program.$$" "$program"; }
echo "$program"
