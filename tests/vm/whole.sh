#!/usr/bin/busybox sh
# The first process of a machine whose root is the host's own, read by 9p, with all changes in memory: Debian's kernel
# with its headers where its packages put them. It runs /given/script there, whose lines "name: value" are the results.
bb=/usr/bin/busybox
release=$($bb uname -r)
$bb mkdir -p /proc /sys /low /memory /new
$bb mount -t proc proc /proc
for module in $($bb cat /modules/order); do $bb insmod "/modules/$module"; done
$bb mount -t tmpfs tmpfs /memory
$bb mkdir /memory/root /memory/root-work /memory/src /memory/src-work
$bb mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=512000,cache=loose host /low
$bb mount -t overlay -o lowerdir=/low,upperdir=/memory/root,workdir=/memory/root-work overlay /new
for kind in proc:proc sysfs:sys devtmpfs:dev tmpfs:run tmpfs:tmp tmpfs:dev/shm securityfs:sys/kernel/security; do
    $bb mkdir -p "/new/${kind#*:}"
    $bb mount -t "${kind%:*}" none "/new/${kind#*:}"
done
kept=$($bb cat /kept)
src=$kept/usr/src
$bb mkdir -p /new/usr/src "/new/usr/lib/modules/$release"
$bb mount -t overlay -o "lowerdir=/low$src,upperdir=/memory/src,workdir=/memory/src-work" overlay /new/usr/src
$bb sed -i "s,^include $kept,include ," "/new/usr/src/linux-headers-$release/Makefile"
for built in /low"$kept"/usr/lib/linux-kbuild-*; do
    $bb mkdir -p "/new/usr/lib/${built##*/}"
    $bb mount -o bind "$built" "/new/usr/lib/${built##*/}"
done
$bb ln -s "/usr/src/linux-headers-$release" "/new/usr/lib/modules/$release/build"
$bb cp -r /given /new/run/given
$bb chroot /new /bin/bash /run/given/script "$($bb cat /checkout)"
$bb poweroff -f
