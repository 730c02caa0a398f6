// SPDX-License-Identifier: GPL-2.0-or-later
/* AIMD as RFC 5681 has it, as a BPF program: with ALPHA at 1 it is Linux's Reno. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define ALPHA 1

char _license[] SEC("license") = "GPL";

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

struct mine {
	__u32 losses;
};

static struct mine *state_of(struct sock *sk)
{
	return (struct mine *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
	state_of(sk)->losses = 0;
}

SEC("struct_ops")
__u32 BPF_PROG(mine_ssthresh, struct sock *sk)
{
	__u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	state_of(sk)->losses++;
	return half > 2 ? half : 2;
}

SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (tp->snd_cwnd < tp->snd_ssthresh) {
		if (tp->snd_cwnd >= 2 * tp->max_packets_out && !BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
			return;
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	} else if (!BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited)) {
		return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd / ALPHA, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops mine = {
	.init = (void *)mine_init,
	.ssthresh = (void *)mine_ssthresh,
	.cong_avoid = (void *)mine_cong_avoid,
	.undo_cwnd = (void *)mine_undo_cwnd,
	.name = "mine",
};
