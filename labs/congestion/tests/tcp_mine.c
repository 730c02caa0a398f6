// SPDX-License-Identifier: GPL-2.0-or-later
/* AIMD as RFC 5681 has it: with alpha at 1 it is Linux's Reno. */
#include <linux/module.h>
#include <net/tcp.h>

static int alpha __read_mostly = 1;
module_param(alpha, int, 0644);
MODULE_PARM_DESC(alpha, "segments by which the window grows in a round trip");

struct mine {
	u32 losses;
};

static void mine_init(struct sock *sk)
{
	struct mine *mine = inet_csk_ca(sk);

	mine->losses = 0;
}

static u32 mine_ssthresh(struct sock *sk)
{
	struct mine *mine = inet_csk_ca(sk);

	mine->losses++;
	return max(tcp_snd_cwnd(tcp_sk(sk)) >> 1U, 2U);
}

static void mine_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, max_t(u32, tcp_snd_cwnd(tp) / alpha, 1), acked);
}

static struct tcp_congestion_ops mine __read_mostly = {
	.init = mine_init,
	.ssthresh = mine_ssthresh,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.cong_avoid = mine_cong_avoid,
	.owner = THIS_MODULE,
	.name = "mine",
};

static int __init mine_register(void)
{
	BUILD_BUG_ON(sizeof(struct mine) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&mine);
}

static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&mine);
}

module_init(mine_register);
module_exit(mine_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("AIMD");
