#!/tools/busybox sh
# Runs as init of the virtual machine: tries our modules on a stock kernel and prints "name: value" lines for test_modules_vm.py.
/tools/busybox --install -s /bin
export PATH=/tools:/bin TC_LIB_DIR=/lib/tc
# This shell would take its own small versions.
ip() { /tools/ip "$@"; }
tc() { /tools/tc "$@"; }
ping() { /tools/ping "$@"; }
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
echo 4 >/proc/sys/kernel/printk
say() { echo "$1: $2"; }
A() { ip netns exec a "$@"; }
B() { ip netns exec b "$@"; }

for module in $(cat /modules/order); do insmod /modules/$module || say failed "insmod $module"; done
say kernel "$(uname -r)"
loaded() { grep -c -E '^(sch_psp|tcp_fast|tcp_ghstcp|tcp_bbr3|tcp_prague) ' /proc/modules; }
say loaded "$(loaded)"
say congestion "$(cat /proc/sys/net/ipv4/tcp_available_congestion_control)"

ip netns add a; ip netns add b
ip link add a0 netns a mtu 9000 type veth peer name b0 netns b mtu 9000
# Nobody asks for routers: such a packet would be counted among those that wait.
for node in a b; do ip netns exec $node sh -c "echo 0 >/proc/sys/net/ipv6/conf/${node}0/router_solicitations"; done
for node in a b; do ip -n $node link set lo up; ip -n $node link set ${node}0 up; done
ip -n a addr add 10.0.0.1/24 dev a0; ip -n b addr add 10.0.0.2/24 dev b0
ip -n a addr add fd00::1/64 dev a0 nodad; ip -n b addr add fd00::2/64 dev b0 nodad
mtu() { ip -n a link set a0 mtu $1; ip -n b link set b0 mtu $1; }

# Bits per second on the wire (framing counted) that reach b in $1 seconds. One process reads clock and counters.
counted() {
	B awk 'BEGIN { getline <"/proc/uptime"; t = $1; while (getline <"/proc/net/dev") if ($1 == "b0:") print t, $2, $3 }'
}
arriving() {
	before=$(counted); sleep $1; after=$(counted)
	echo $before $after | awk '{ printf "%d\n", 8 * ($5 - $2 + 24 * ($6 - $3)) / ($4 - $1) }'
}
server() { B iperf3 -s -1 -D >/dev/null; sleep 0.5; }
tcp() { server; A iperf3 -c $1 -t $2 ${3:+-C $3} -f k | awk '/receiver/ { print int($7 * 1000) }'; }
# The word after this one in the statistics of a class.
xstat() { A tc -s class show dev a0 classid ${2:-1:1} | awk -v key=$1 '{ for (i = 1; i < NF; i++) if ($i == key) { print $(i + 1); exit } }'; }

mtu 1500
A tc qdisc add dev a0 root handle 1: psp default 1 || say failed "qdisc add"
A tc class add dev a0 parent 1: classid 1:1 psp rate 4mbit departure end || say failed "class add"
A tc qdisc add dev a0 parent 1:1 handle 3: bfifo limit 100000 || say failed "child"
say qdisc "$(A tc qdisc show dev a0 root)"
say class "$(A tc class show dev a0)"
say refused-rate "$(A tc class change dev a0 classid 1:1 psp rate 2tbit 2>&1 | grep psp)"
say refused-mode "$(A tc qdisc change dev a0 root handle 1: psp mode gap 2>&1 | grep psp)"
say refused-word "$(A tc class change dev a0 classid 1:1 psp speed 3 2>&1 | head -1)"

server
A iperf3 -u -c 10.0.0.2 -b 8M -l 1000 -t 60 >/dev/null &
sleep 2; say udp-4mbit "$(arriving 4)"
A tc class change dev a0 classid 1:1 psp rate 2mbit
sleep 1; say udp-2mbit "$(arriving 4)"
killall iperf3; wait; sleep 1
say late "$(xstat late) of $(xstat paced), at most $(xstat max)"

A tc class change dev a0 classid 1:1 psp rate 10mbit
say tcp "$(tcp 10.0.0.2 4)"
say tcp6 "$(tcp fd00::2 4)"
say segmented "$(xstat segmented)"
# As many packets of 9000 bytes find room as there were of 1500.
A tc qdisc change dev a0 parent 1:1 handle 3: bfifo limit 600000
mtu 9000
say tcp-jumbo "$(tcp 10.0.0.2 8)"
mtu 1500
for name in fast ghstcp ghstcp0 hstcp bbr3 prague; do say tcp-$name "$(tcp 10.0.0.2 2 $name)"; done

A tc class add dev a0 parent 1: classid 1:2 psp rate 1mbit
A tc filter add dev a0 parent 1: protocol ip u32 match ip protocol 1 0xff flowid 1:2 || say failed filter
A ping -q -c 5 -i 0.1 10.0.0.2 >/dev/null
say filtered "$(xstat paced 1:2)"
say in-use "$(A tc class del dev a0 classid 1:2 2>&1 | grep psp)"
A tc filter del dev a0 parent 1:; A tc class del dev a0 classid 1:2 || say failed "class del"
A tc class change dev a0 classid 1:1 psp dither 3ms seed 7 rate 0
say dithered "$(A ping -q -c 40 -i 0.05 10.0.0.2 | awk -F/ '/rtt/ { print $5 }')"
say backlog "$(A tc -s qdisc show dev a0 root | awk '/backlog/ { print $2, $3 }')"
A tc qdisc del dev a0 root

A tc qdisc add dev a0 root handle 1: netem delay 20ms limit 10000
A tc qdisc add dev a0 parent 1:1 handle 2: psp default 1 || say failed "psp under netem"
A tc class add dev a0 parent 2: classid 2:1 psp rate 4mbit departure end || say failed "class under netem"
A tc qdisc add dev a0 parent 2:1 handle 3: bfifo limit 100000
say netem-rtt "$(A ping -q -c 10 -i 0.1 10.0.0.2 | awk -F/ '/rtt/ { print $5 }')"
server
A iperf3 -u -c 10.0.0.2 -b 8M -l 1000 -t 60 >/dev/null &
sleep 2; say netem-udp-4mbit "$(arriving 4)"
killall iperf3; wait
sleep 0.5; say netem-backlog "$(A tc -s qdisc show dev a0 | awk '/backlog/ { printf "%s %s ", $2, $3 }')"
say netem-tcp "$(tcp 10.0.0.2 4)"
A tc qdisc del dev a0 root

# 200 kbit/s on a line of 1 Mbit/s: 1066 bytes on the wire are followed by 4 times as much. veth takes frames faster
# than such a line would, so the class is never idle for psp, however slow this machine is.
A tc qdisc add dev a0 root handle 1: psp mode gap default 1 line 1mbit || say failed "gap mode"
A tc class add dev a0 parent 1: classid 1:1 psp rate 200kbit
B tcpdump -Z root -i b0 -B 65536 -s 64 -w /tmp/gap.pcap >/dev/null 2>&1 &
watcher=$!
sleep 1; server
A iperf3 -u -c 10.0.0.2 -b 0 -n 400K -l 1000 >/dev/null
sleep 1; kill $watcher; killall tcpdump; wait
say gap-stats "$(xstat pause) frames, $(xstat frames) bytes, $(xstat gaps) gaps"
tcpdump -Z root -nn -e -r /tmp/gap.pcap 2>/dev/null | awk '
	{ for (i = 1; i < NF; i++) if ($i == "length") { size = $(i + 1) + 0; break } }
	$4 ~ /^01:80:c2:00:00:01/ { frames++; bytes += size + 24; gap += size + 24; if (size > most) most = size; if (!least || size < least) least = size; next }
	size == 1042 { if (before == 1042) { gaps[gap]++; pairs++ } }
	{ before = size; gap = 0 }
	END { for (g in gaps) print "gap-of-" g ": " gaps[g]; print "gap-pairs: " pairs + 0; print "pause-frames: " frames + 0; print "pause-bytes: " bytes + 0; print "pause-sizes: " least, most }'
say pause "$(tcpdump -Z root -nn -e -xx -r /tmp/gap.pcap 'ether proto 0x8808' 2>/dev/null | sed -n '1,3p' | tr '\n\t' '  ')"
A tc qdisc del dev a0 root
server; A iperf3 -u -c 10.0.0.2 -b 1M -l 1000 -t 1 >/dev/null

# With packets inside: a class is deleted, the device goes down, the qdisc is destroyed.
A tc qdisc add dev a0 root handle 1: psp default 1
A tc class add dev a0 parent 1: classid 1:1 psp rate 8kbit departure end dither 10ms
A ping -q -c 20 -i 0.01 -W 1 10.0.0.2 >/dev/null
A tc class del dev a0 classid 1:1; A ping -q -c 3 10.0.0.2 >/dev/null || say failed "ping past a deleted class"
A tc class add dev a0 parent 1: classid 1:1 psp rate 8kbit
A ping -q -c 20 -i 0.01 -W 1 10.0.0.2 >/dev/null
ip -n a link set a0 down; ip -n a link set a0 up
ip netns del a; ip netns del b

# A live lab of kernel links, made by ewan-node with this kernel's netem and our psp; then nothing of it is left.
ewan-node apply --plan /plan.json --state /run/ewan/vm >/run/applied || say failed "ewan-node apply"
left() { ip netns exec ewan-vm-left1 "$@"; }
right1=$(awk '$2 == "right1" { print $1 }' /run/ewan/vm/hosts)
say lab-qdiscs "$(ip netns exec ewan-vm-core /tools/tc qdisc show dev eth1 | tr '\n' ' ')"
say lab-rtt "$(left ping -q -c 10 -i 0.2 $right1 | awk -F/ '/rtt/ { print $5 }')"
ip netns exec ewan-vm-right1 iperf3 -s -1 -D >/dev/null; sleep 0.5
say lab-tcp "$(left iperf3 -c $right1 -t 8 -O 2 -f k | awk '/receiver/ { print int($7 * 1000) }')"
# A change while packets are in the link: all come, in order, the later ones after the new delay and at the new rate.
change() { echo "$2" | ewan-node change --state /run/ewan/vm --link core --direction $1 2>&1 || say failed "ewan-node change"; }
left ping -q -c 40 -i 0.02 $right1 >/run/pings & sleep 0.4
for way in forward backward; do change $way '{"delay": {"kind": "constant", "delay_ns": 60000000}}'; done
wait; say lab-changed-lost "$(awk -F', ' '/loss/ { print $3 }' /run/pings)"
change forward '{"rate_bps": 2000000}'
say lab-changed-rtt "$(left ping -q -c 10 -i 0.2 $right1 | awk -F/ '/rtt/ { print $5 }')"
ip netns exec ewan-vm-right1 iperf3 -s -1 -D >/dev/null; sleep 0.5
say lab-changed-tcp "$(left iperf3 -c $right1 -t 8 -O 3 -f k | awk '/receiver/ { print int($7 * 1000) }')"
say lab-changes "$(wc -l </run/ewan/vm/changes.jsonl)"
say lab-refused "$(echo '{"loss": {"kind": "every_nth", "n": 3}}' | ewan-node change --state /run/ewan/vm --link core --direction forward 2>&1)"
ewan-node down --state /run/ewan/vm >/dev/null || say failed "ewan-node down"
say lab-left "$(ls /run/netns | wc -l)"

# A host with a real card, which fills its line with gap packets: two cards of QEMU's, with a cable between them.
ewan-node apply --plan /gaps.plan.json --state /run/ewan/gaps >/run/applied || say failed "ewan-node apply of cards"
host() { ip netns exec ewan-gaps-left1 "$@"; }
right1=$(awk '$2 == "right1" { print $1 }' /run/ewan/gaps/hosts)
say gaps-qdisc "$(host /tools/tc qdisc show dev eth0 | tr '\n' ' ')"
host ping -q -c 1 $right1 >/dev/null
say gaps-lost "$(host ping -q -c 30 -l 30 -s 1400 -W 5 $right1 | awk -F', ' '/loss/ { print $3 }')"
say gaps-stats "$(host /tools/tc -s class show dev eth0 | grep gaps)"
say gaps-cards "$(ewan-node cards </gaps.plan.json)"
ewan-node down --state /run/ewan/gaps >/dev/null || say failed "ewan-node down of cards"
say gaps-left "$(ls /run/netns | wc -l) $(ls /sys/class/net | grep -c eth)"
sleep 1
rmmod sch_psp tcp_fast tcp_ghstcp tcp_bbr3 tcp_prague; say unloaded "$(loaded)"
say trouble "$(dmesg | grep -c -E 'WARNING|BUG|Oops|Call Trace|refcount|leak')"
dmesg | grep -E -A12 'WARNING|BUG|Oops|Call Trace' | head -60
say ended yes
poweroff -f
