#!/bin/sh
# Builds containerlab of the pinned version from its Go module, unless it is there already, and prints its path.
# In: go.mod and go.sum of this folder (containerlab's own, and one module whose name no longer leads anywhere replaced),
# the patches. Out: target/containerlab/containerlab and, beside it, clab.schema.json: links to those in the cache, which
# are named by the hash of what they were made of. Where modules come from is up to Go's own settings (GOPROXY); what comes
# is checked against go.sum.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
version=0.60.0
sum=h1:rlHmGeC9wbQZMO2/y6GA14cv3WVua3ZrU5NUKp8ph/A= # of the module, as go.sum would have it
oldest=1.22.1
module=github.com/srl-labs/containerlab
# As containerlab's own releases are built: Podman too, nothing in C.
tags="podman exclude_graphdriver_btrfs btrfs_noversion exclude_graphdriver_devicemapper exclude_graphdriver_overlay containers_image_openpgp"

fail() { echo "containerlab: $*" >&2; exit 2; }
say() { echo "containerlab: $*" >&2; }

made_of=$(cat "$here/build.sh" "$here/go.mod" "$here/go.sum" "$here"/*.patch | sha256sum | cut -c1-16)
kept=$(kept containerlab)
target=$kept/$made_of
# Prints the binary's path in this clone.
publish() {
    mkdir -p "$root/target/containerlab"
    ln -sfn "$target/containerlab" "$target/clab.schema.json" "$root/target/containerlab/" || fail "$root/target/containerlab cannot be written"
    echo "$root/target/containerlab/containerlab"
}
exec 9>"$kept/.lock"
if command -v flock >/dev/null; then flock 9; fi
# The binary is the last that is put there.
if whole "$target/containerlab"; then
    publish
    exit 0
fi
mkdir -p "$target"

command -v go >/dev/null || fail "go is missing: install Go $oldest or newer from go.dev (or put containerlab $version into PATH)"
found=$(go env GOVERSION | sed 's/^go//')
[ "$(printf '%s\n%s\n' "$oldest" "$found" | sort -V | head -n 1)" = "$oldest" ] ||
    fail "go $found is too old: install Go $oldest or newer from go.dev (or put containerlab $version into PATH)"
command -v patch >/dev/null || fail "patch is missing: apt install patch"

begin=$(date +%s)
log=$target/build.log
say "fetching version $version and what it is made of"
# Outside of any module there is no go.sum that knows this one; its hash is checked here instead.
facts=$(cd / && GOFLAGS= GOSUMDB=off go mod download -json "$module@v$version" 2>"$log") ||
    fail "go could not fetch $module v$version (see $log): check the network and GOPROXY"
field() { printf '%s\n' "$facts" | sed -n "s/^.*\"$1\": \"\(.*\)\".*$/\1/p"; }
[ "$(field Sum)" = "$sum" ] || fail "$module v$version has another content than expected ($(field Sum)): check GOPROXY"

source=$target/source # removed at the end
rm -rf "$source"
cp -r "$(field Dir)" "$source"
chmod -R u+w "$source"
cp "$here/go.mod" "$here/go.sum" "$source/"
for change in "$here"/*.patch; do
    patch --quiet --directory "$source" --strip 1 <"$change" || fail "$change does not apply"
done
cd "$source"
(GOFLAGS=-mod=readonly GOSUMDB=off CGO_ENABLED=0 nice go build -v -trimpath -buildvcs=false -tags "$tags" \
    -ldflags "-s -w -X $module/cmd.version=$version" -o "$target/containerlab.new" . >"$log" 2>&1 9>&-) &
build=$!
trap 'kill $build 2>/dev/null || true' EXIT
trap 'exit 2' INT TERM
while kill -0 $build 2>/dev/null; do
    sleep 1
    passed=$(($(date +%s) - begin))
    [ $((passed % 10)) != 0 ] || say "$(grep -c '^[a-z].*/' "$log" || true) packages compiled in $passed s"
done
wait $build || fail "go build failed (see $log): $(tail -n 1 "$log")"
cp schemas/clab.schema.json "$target/clab.schema.json"
mv "$target/containerlab.new" "$target/containerlab"
note "$target/containerlab"
cd /
rm -rf "$source"
say "version $version built in $(($(date +%s) - begin)) s"
publish
