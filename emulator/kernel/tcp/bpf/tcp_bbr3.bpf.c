// SPDX-License-Identifier: GPL-2.0-or-later
/* BBR, version 3, as a BPF program: tcp_bbr3.c, called from the kernel's struct_ops. */
#include "../tcp_bbr3.c"

SEC("struct_ops")
void BPF_PROG(bpf_bbr3_init, struct sock *sk)
{
	bbr3_init(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_bbr3_ssthresh, struct sock *sk)
{
	return bbr3_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_bbr3_undo_cwnd, struct sock *sk)
{
	return bbr3_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(bpf_bbr3_set_state, struct sock *sk, u8 state)
{
	bbr3_set_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(bpf_bbr3_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	bbr3_cong_control(sk, ack, flag, rs);
}

SEC("struct_ops")
void BPF_PROG(bpf_bbr3_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	bbr3_cwnd_event(sk, event);
}

SEC("struct_ops")
u32 BPF_PROG(bpf_bbr3_sndbuf_expand, struct sock *sk)
{
	return bbr3_sndbuf_expand(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_bbr3 = {
	.init		= (void *)bpf_bbr3_init,
	.ssthresh	= (void *)bpf_bbr3_ssthresh,
	.undo_cwnd	= (void *)bpf_bbr3_undo_cwnd,
	.set_state	= (void *)bpf_bbr3_set_state,
	.cong_control	= (void *)bpf_bbr3_cong_control,
	.cwnd_event	= (void *)bpf_bbr3_cwnd_event,
	.sndbuf_expand	= (void *)bpf_bbr3_sndbuf_expand,
	.name		= "bbr3",
};
