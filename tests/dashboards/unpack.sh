#!/bin/sh
# Prometheus' binaries without its service: Debian's package, downloaded and unpacked into DIR (usr/bin/prometheus,
# usr/bin/promtool). Needs apt-get and dpkg; nothing is installed.
set -eu
[ $# = 1 ] || { echo "unpack.sh: write unpack.sh DIR" >&2; exit 2; }
mkdir -p "$1"
into=$(cd "$1" && pwd)
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
# The first try may fail for want of package lists.
retry="-o Acquire::Retries=3"
apt-get $retry download -qq prometheus 2>/dev/null || { apt-get $retry update -qq && apt-get $retry download -qq prometheus 2>/dev/null; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin
# The whole directory takes its place at once: others may be unpacking too.
rm -rf "$into/usr"
mv -T usr "$into/usr" || [ -x "$into/usr/bin/promtool" ]
