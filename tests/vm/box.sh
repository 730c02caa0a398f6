#!/usr/bin/dash
# The first process of a machine that stands for a box between two networks: Debian's kernel, a bridge of two cards, an
# SSH server. `a` and `b` are what is plugged into the cards. Files of tests/vm/box.py: /box/host_key, /root/.ssh.
bb=/usr/bin/busybox
$bb mkdir -p /proc /sys /dev /root /var/run /bin /sbin /run
$bb mount -t proc proc /proc
$bb --install -s /bin
$bb ln -sf /usr/bin/dash /bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs run /run
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
chmod 700 /root /root/.ssh
for module in $(cat /modules/order); do insmod "/modules/$module"; done
ip link set lo up
ip link set eth0 up
ip addr add 192.0.2.15/24 dev eth0
ip link add br0 type bridge
for side in 1:a 2:b; do
    card=card${side%:*} node=${side#*:}
    ip netns add $node
    ip link add $card type veth peer name port netns $node
    ip link set $card master br0 up
    ip -n $node link set port up
    ip -n $node addr add 10.0.0.${side%:*}/24 dev port
done
ip link set br0 up
# Cards that are cabled to the machine outside, where there are some.
if ip link show eth2 >/dev/null 2>&1; then
    ip link add br1 type bridge
    for card in eth1 eth2; do ip link set $card master br1 up; done
    ip link set br1 up
fi
echo "box: ready"
while :; do
    dropbear -F -E -s -r /box/host_key -p 22
    sleep 1
done
