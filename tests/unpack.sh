#!/bin/sh
# Programs without their services: Debian's packages, downloaded and unpacked into DIR (usr/bin, usr/sbin, usr/lib).
# Needs apt-get and dpkg; nothing is installed.
set -eu
[ $# -ge 2 ] || { echo "unpack.sh: write unpack.sh DIR PACKAGE..." >&2; exit 2; }
mkdir -p "$1"
into=$(cd "$1" && pwd)
shift
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
# The first try may fail for want of package lists.
retry="-o Acquire::Retries=3"
apt-get $retry download -qq "$@" 2>/dev/null || { apt-get $retry update -qq && apt-get $retry download -qq "$@" 2>/dev/null; }
for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./etc --exclude=./var; done
# The whole directory takes its place at once: others may be unpacking too.
rm -rf "$into/usr"
mv -T usr "$into/usr" || [ -d "$into/usr" ]
