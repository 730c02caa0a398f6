// SPDX-License-Identifier: GPL-2.0-or-later
/* FAST TCP as a BPF program: tcp_fast.c, called from the kernel's struct_ops. */
#include "../tcp_fast.c"

SEC("struct_ops")
void BPF_PROG(bpf_fast_init, struct sock *sk)
{
	fast_init(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_fast_ssthresh, struct sock *sk)
{
	return fast_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_fast_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(bpf_fast_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	fast_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(bpf_fast_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	fast_pkts_acked(sk, sample);
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_fast = {
	.init		= (void *)bpf_fast_init,
	.ssthresh	= (void *)bpf_fast_ssthresh,
	.undo_cwnd	= (void *)bpf_fast_undo_cwnd,
	.cong_avoid	= (void *)bpf_fast_cong_avoid,
	.pkts_acked	= (void *)bpf_fast_pkts_acked,
	.name		= "fast",
};
