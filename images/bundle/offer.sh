#!/bin/sh
# Looks whether a release bundle is there and unpacks what it has for this clone into the cache: the one that BUNDLE names,
# else those beside this tree or in it. Each is looked at once. What cannot be used is told in a line, and all is built
# here as without it. Called by setup.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

use() { python3 -m images.bundle.use "$1"; }

case ${BUNDLE-} in
off) exit ;;
?*)
    # What somebody asks for by name and cannot have is an error.
    use "$BUNDLE" || { status=$?; [ "$status" = 1 ] || exit "$status"; }
    exit
    ;;
esac
seen=target/bundles.seen
for file in ../ewan-bundle-*.tar.xz ewan-bundle-*.tar.xz; do
    [ -f "$file" ] || continue
    mark="$(stat -c '%n %i %Y %s' "$file") $(images/node/build.sh --sources)"
    ! grep -qsxF "$mark" "$seen" || continue
    use "$file" || true
    mkdir -p target
    echo "$mark" >>"$seen"
done
