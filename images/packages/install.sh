#!/bin/sh
# Installs an image's packages where images/Dockerfile runs it: `install.sh KIND`, as of the date in the lock, or from
# MIRROR as of today.
set -eu
here=$(dirname "$0")
release=$(sed -n 's/^release //p' "$here/lock")
date=$(sed -n 's/^date //p' "$here/lock")

rm -rf /etc/apt/sources.list.d/*
for suite in "debian $release" "debian $release-updates" "debian-security $release-security"; do
    archive=${suite% *}
    place=http://snapshot.debian.org/archive/$archive/$date
    [ -z "${MIRROR-}" ] || place=$MIRROR/$archive
    echo "deb [check-valid-until=no] $place ${suite#* } main"
done >/etc/apt/sources.list
apt-get update -qq
sed 's/#.*//' "$here/base.list" "$here/$1.list" |
    DEBIAN_FRONTEND=noninteractive xargs apt-get install -y -qq --no-install-recommends
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /usr/share/man /usr/share/locale /tmp/packages
