#!/bin/sh
# An example for `ewan lab import`: what a box between two networks did to packets, with netem and a token bucket of tc.
TO_SITE=eth0
TO_NET=eth1
tc qdisc del dev $TO_SITE root 2>/dev/null
tc qdisc add dev $TO_SITE root handle 1: netem delay 50ms loss 1%
tc qdisc add dev $TO_SITE parent 1:1 handle 10: tbf rate 10mbit burst 16kb latency 100ms
tc qdisc add dev $TO_NET root netem delay 50ms rate 1mbps limit 200
