// SPDX-License-Identifier: GPL-2.0-or-later
/* gHSTCP and HSTCP as BPF programs: tcp_ghstcp.c, called from the kernel's struct_ops. */
#include "../tcp_ghstcp.c"

SEC("struct_ops")
void BPF_PROG(bpf_ghstcp_init, struct sock *sk)
{
	ghstcp_init(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_ghstcp_ssthresh, struct sock *sk)
{
	return ghstcp_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_ghstcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(bpf_ghstcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	ghstcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(bpf_ghstcp_refined_acked, struct sock *sk, const struct ack_sample *sample)
{
	ghstcp_refined_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(bpf_ghstcp_original_acked, struct sock *sk, const struct ack_sample *sample)
{
	ghstcp_original_acked(sk, sample);
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_ghstcp = {
	.init		= (void *)bpf_ghstcp_init,
	.ssthresh	= (void *)bpf_ghstcp_ssthresh,
	.undo_cwnd	= (void *)bpf_ghstcp_undo_cwnd,
	.cong_avoid	= (void *)bpf_ghstcp_cong_avoid,
	.pkts_acked	= (void *)bpf_ghstcp_refined_acked,
	.name		= "ghstcp",
};

SEC(".struct_ops")
struct tcp_congestion_ops bpf_ghstcp0 = {
	.init		= (void *)bpf_ghstcp_init,
	.ssthresh	= (void *)bpf_ghstcp_ssthresh,
	.undo_cwnd	= (void *)bpf_ghstcp_undo_cwnd,
	.cong_avoid	= (void *)bpf_ghstcp_cong_avoid,
	.pkts_acked	= (void *)bpf_ghstcp_original_acked,
	.name		= "ghstcp0",
};

SEC(".struct_ops")
struct tcp_congestion_ops bpf_hstcp = {
	.init		= (void *)bpf_ghstcp_init,
	.ssthresh	= (void *)bpf_ghstcp_ssthresh,
	.undo_cwnd	= (void *)bpf_ghstcp_undo_cwnd,
	.cong_avoid	= (void *)bpf_ghstcp_cong_avoid,
	.name		= "hstcp",
};
