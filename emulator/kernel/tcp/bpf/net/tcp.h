/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a congestion control takes from <net/tcp.h>, for a BPF program. Structures are the running kernel's (vmlinux.h). */
#pragma once

#include <linux/module.h>

#define TCP_INIT_CWND 10
#define ICSK_CA_PRIV_SIZE sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv)

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static inline int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	return 0;
}

static inline void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
}

static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static inline void *inet_csk_ca(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_priv;
}

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 packets)
{
	tp->snd_cwnd = packets;
}

static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Does the window limit what is sent? In slow start half of it is enough. */
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}
