// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tcp_fast.c	FAST TCP: a window that keeps alpha packets in the queue.
 *
 * After C. Jin, D. X. Wei, S. H. Low, "FAST TCP: Motivation, Architecture,
 * Algorithms, Performance", IEEE INFOCOM 2004:
 *
 *	w <- min(2w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha))
 *
 * baseRTT is the least RTT seen, RTT the average, of which each packet's RTT
 * has the weight min(3/w, 1/4). In equilibrium w (1 - baseRTT/RTT) = alpha.
 * The window changes over one round trip, in even steps, and rests during
 * the next one. A loss halves it.
 *
 * Differences from the paper, and what it leaves open:
 *  - A sample is an ACK, not a packet. It weighs as much as the packets that
 *    it acknowledges, and its RTT is that of the last of them.
 *  - alpha is a constant. The paper's other choice, in proportion to w while
 *    there is no queue, is not made: slow start does that.
 *  - Slow start ends, if not by a loss, when the queue that does not drain
 *    within a round trip holds alpha packets of the flow: the least RTT of
 *    the round is what counts, as the bursts of slow start queue long before
 *    the path is full.
 *  - When something else has changed the window (a loss, its end, idleness),
 *    it rests for a round trip before the next change, as the RTT measured
 *    until then belongs to another window.
 *  - A flow that does not use its window does not enlarge it.
 *  - There is no burstiness control, and a loss is recovered from as Linux
 *    does it for all.
 *
 * A connection takes alpha and gamma that hold when it begins.
 */

#include <linux/module.h>
#include <linux/math64.h>
#include <net/tcp.h>

#define FAST_W		8	/* windows: 1/256 packet */
#define FAST_AVG	16	/* average RTT: 2^-16 us */
#define FAST_RTT_MAX	(1U << 24)	/* us: no product below overflows */
#define FAST_SAMPLES	8	/* of a round, before its least RTT counts */

static unsigned int alpha __read_mostly = 100;
static unsigned int gamma __read_mostly = 50;

module_param(alpha, uint, 0644);
MODULE_PARM_DESC(alpha, "packets that a flow keeps in the queue (1 to 65535)");
module_param(gamma, uint, 0644);
MODULE_PARM_DESC(gamma, "gain of an update, in hundredths (1 to 100)");

struct fast {
	u64	avg;		/* average RTT, 2^-16 us; 0: not known */
	u64	window;		/* w, 1/256 packet */
	u64	begin;		/* w at the update's begin */
	u64	target;		/* and at its end */
	u32	base;		/* least RTT, us */
	u32	least;		/* of this round, us */
	u32	samples;	/* of this round */
	u32	end_seq;	/* the round ends when this is acknowledged */
	u32	acked;		/* packets, in this round */
	u16	alpha;		/* packets */
	u8	gamma;		/* hundredths */
	bool	resting;
};

static u32 fast_packets(u64 window)
{
	return max_t(u64, (window + (1 << (FAST_W - 1))) >> FAST_W, 2);
}

static void fast_begin_round(const struct tcp_sock *tp, struct fast *ca)
{
	ca->end_seq = tp->snd_nxt;
	ca->least = U32_MAX;
	ca->samples = 0;
	ca->acked = 0;
}

static void fast_init(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->base = U32_MAX;
	ca->alpha = clamp(READ_ONCE(alpha), 1U, 65535U);
	ca->gamma = clamp(READ_ONCE(gamma), 1U, 100U);
	ca->resting = true;
	fast_begin_round(tcp_sk(sk), ca);
}

/* The estimation component. */
static void fast_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const u32 w = max(tcp_snd_cwnd(tcp_sk(sk)), 1U);
	struct fast *ca = inet_csk_ca(sk);
	u64 rtt;
	s64 away;
	u32 us;

	if (sample->rtt_us < 0)
		return;
	us = clamp_t(u32, sample->rtt_us, 1, FAST_RTT_MAX);
	ca->base = min(ca->base, us);
	ca->least = min(ca->least, us);
	ca->samples++;

	rtt = (u64)us << FAST_AVG;
	if (!ca->avg) {
		ca->avg = rtt;
		return;
	}
	away = (s64)rtt - (s64)ca->avg;
	if (12ULL * sample->pkts_acked >= w)
		ca->avg += div_s64(away, 4);
	else
		ca->avg += div_s64(away * 3 * (s64)sample->pkts_acked, w);
}

/* The window control: where the window is to be after this update. */
static u64 fast_target(const struct fast *ca, u64 w)
{
	u64 rtt = max_t(u64, ca->avg >> (FAST_AVG - FAST_W), 1);
	u64 drained = div64_u64(w * ((u64)ca->base << FAST_W), rtt);
	u64 wanted = drained + ((u64)ca->alpha << FAST_W);

	return min(2 * w, div_u64((100 - ca->gamma) * w + ca->gamma * wanted, 100));
}

/* Have alpha packets of this flow stayed in the queue for all of the round? */
static bool fast_queue_seen(const struct tcp_sock *tp, const struct fast *ca)
{
	if (ca->samples < FAST_SAMPLES)
		return false;
	return (u64)tcp_snd_cwnd(tp) * (ca->least - ca->base) >= (u64)ca->alpha * ca->least;
}

static void fast_rest(const struct tcp_sock *tp, struct fast *ca)
{
	ca->window = (u64)tcp_snd_cwnd(tp) << FAST_W;
	ca->resting = true;
	fast_begin_round(tp, ca);
}

static void fast_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *ca = inet_csk_ca(sk);
	u32 packets;

	if (tcp_in_slow_start(tp)) {
		bool seen = fast_queue_seen(tp, ca);

		if (!before(ack, ca->end_seq))
			fast_begin_round(tp, ca);
		if (!seen) {
			if (tcp_is_cwnd_limited(sk))
				tcp_slow_start(tp, acked);
			return;
		}
		tp->snd_ssthresh = tcp_snd_cwnd(tp);
	}
	if (fast_packets(ca->window) != tcp_snd_cwnd(tp)) {
		fast_rest(tp, ca);
		return;
	}
	if (!before(ack, ca->end_seq)) {
		if (!ca->resting)
			ca->window = ca->target;
		ca->resting = !ca->resting;
		ca->begin = ca->window;
		ca->target = fast_target(ca, ca->window);
		if (ca->target > ca->begin && !tcp_is_cwnd_limited(sk))
			ca->target = ca->begin;
		fast_begin_round(tp, ca);
	}
	if (!ca->resting) {
		s64 change = (s64)ca->target - (s64)ca->begin;
		u32 whole = fast_packets(ca->begin);

		ca->acked = min(ca->acked + acked, whole);
		ca->window = ca->begin + div_s64(change * (s64)ca->acked, whole);
	}
	ca->window = min(ca->window, (u64)tp->snd_cwnd_clamp << FAST_W);
	packets = fast_packets(ca->window);
	tcp_snd_cwnd_set(tp, packets);
	/* A smaller window is no slow start. */
	tp->snd_ssthresh = min(tp->snd_ssthresh, packets);
}

static u32 fast_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
}

static struct tcp_congestion_ops fast_ops __read_mostly = {
	.init		= fast_init,
	.ssthresh	= fast_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= fast_cong_avoid,
	.pkts_acked	= fast_pkts_acked,
	.owner		= THIS_MODULE,
	.name		= "fast",
};

static int __init fast_register(void)
{
	BUILD_BUG_ON(sizeof(struct fast) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&fast_ops);
}

static void __exit fast_unregister(void)
{
	tcp_unregister_congestion_control(&fast_ops);
}

module_init(fast_register);
module_exit(fast_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("FAST TCP");
