// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tcp_ghstcp.c	Gentle HighSpeed TCP, as it was and refined, and the
 *		HighSpeed TCP beneath it.
 *
 * After Z. Zhang, G. Hasegawa, M. Murata, "Experimental Evaluation of Gentle
 * HighSpeed TCP" (slides), which gives the rule of their MASCOTS 2004 paper
 * and its refinement, and S. Floyd, RFC 3649. Three congestion controls:
 *
 *  hstcp	HighSpeed TCP: a window w grows by a(w) packets in a round
 *		trip, and loses the share b(w) of itself at a loss.
 *  ghstcp0	gHSTCP, the original: that is its HSTCP mode. In Reno mode a is
 *		1 and b is 1/2. Where the RTT of a round trip's packets is
 *		positively correlated with the times at which they were sent,
 *		the mode is Reno, otherwise HSTCP.
 *  ghstcp	gHSTCP, refined: with RTT_min, the least of the rounds' average
 *		RTTs in a cycle, and RTT_std, the RTT's standard deviation,
 *			RTT <  RTT_min + 2 RTT_std	HSTCP
 *			RTT >= RTT_min + 4 RTT_std	Reno
 *			between them			by the trend, as above
 *
 * What the slides leave open is decided here as follows:
 *  - The mode is decided once each round trip, from the RTTs of that round;
 *    RTT is their mean. Each ACK is a sample: the RTT of the last packet that
 *    it acknowledges. Rounds in which a loss is recovered from do not count.
 *  - A cycle is the time from one loss to the next.
 *  - RTT_std is the deviation within the round that gave RTT_min. The clocks
 *    of that time counted in ms, and no deviation was below what rounding to
 *    a ms makes, 1 ms / sqrt(12): so RTT_std is taken to be at least that of
 *    a clock of `clock_us`. Without it, a path without any jitter would be in
 *    Reno mode at the first packet that queues.
 *  - Any positive correlation counts, however weak.
 *  - The first mode is HSTCP. A loss in slow start halves the window.
 *
 * Differences from Linux's own tcp_highspeed, which is HSTCP too: a(w) and
 * b(w) are interpolated between the rows of RFC 3649's table instead of taken
 * from the next row, and a(w) counts for each packet that is acknowledged
 * instead of each ACK, so that it is reached with delayed ACKs too.
 */

#include <linux/module.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <net/tcp.h>

#define GHSTCP_A	8	/* a(w): 1/256 packet */
#define GHSTCP_B	12	/* b(w): 1/4096 */
#define GHSTCP_SPAN	20	/* bits of a time within a round; 2^17 samples then fit s64 */
#define GHSTCP_SAMPLES	(1U << 17)
#define GHSTCP_FEWEST	4	/* samples that say something */

static unsigned int clock_us __read_mostly = 1000;

module_param(clock_us, uint, 0644);
MODULE_PARM_DESC(clock_us, "us of the clock whose rounding RTT_std never falls below");

/*
 * RFC 3649, appendix B: from the window w on, a(w) is the row's number, and
 * b(w), in 1/4096, is 0.5 - 0.4 log(w/38) / log(83000/38).
 */
static const struct {
	u32	w;
	u16	b;
} ghstcp_rows[] = {
	{38, 2048}, {118, 1807}, {221, 1673}, {347, 1577}, {495, 1501},
	{663, 1439}, {851, 1386}, {1058, 1339}, {1284, 1298}, {1529, 1261},
	{1793, 1227}, {2076, 1196}, {2378, 1167}, {2699, 1140}, {3039, 1114},
	{3399, 1090}, {3778, 1068}, {4177, 1047}, {4596, 1026}, {5036, 1007},
	{5497, 988}, {5979, 970}, {6483, 953}, {7009, 936}, {7558, 920},
	{8130, 905}, {8726, 890}, {9346, 875}, {9991, 861}, {10661, 847},
	{11358, 833}, {12082, 820}, {12834, 807}, {13614, 795}, {14424, 782},
	{15265, 770}, {16137, 759}, {17042, 747}, {17981, 736}, {18955, 724},
	{19965, 713}, {21013, 702}, {22101, 692}, {23230, 681}, {24402, 670},
	{25618, 660}, {26881, 650}, {28193, 640}, {29557, 630}, {30975, 620},
	{32450, 610}, {33986, 600}, {35586, 590}, {37253, 580}, {38992, 571},
	{40808, 561}, {42707, 551}, {44694, 541}, {46776, 532}, {48961, 522},
	{51258, 512}, {53677, 502}, {56230, 493}, {58932, 483}, {61799, 472},
	{64851, 462}, {68113, 452}, {71617, 441}, {75401, 430}, {79517, 419},
	{84035, 407}, {89053, 395}, {94717, 381},
};

#define GHSTCP_LAST	(ARRAY_SIZE(ghstcp_rows) - 1)

struct ghstcp {
	s64	times;		/* sums over the round's samples: when they were sent, */
	s64	rtts;		/* their RTTs, both from the first sample's on, */
	s64	products;	/* of both, */
	s64	squares;	/* of the RTTs; all in units of 2^unit us */
	u64	credit;		/* growth below one packet, 1/256 packet * w */
	u64	sent;		/* when the round's first sample was sent, us */
	u32	first;		/* and its RTT, us */
	u32	samples;
	u32	end_seq;	/* the round ends when this is acknowledged */
	u32	least;		/* RTT_min of this cycle, us */
	u32	deviation;	/* RTT_std of the round that gave it, us */
	u8	unit;
	bool	reno;
};

static void ghstcp_begin_round(const struct tcp_sock *tp, struct ghstcp *ca)
{
	ca->end_seq = tp->snd_nxt;
	ca->times = ca->rtts = ca->products = ca->squares = 0;
	ca->samples = 0;
}

static void ghstcp_begin_cycle(const struct tcp_sock *tp, struct ghstcp *ca)
{
	ca->least = U32_MAX;
	ca->deviation = 0;
	ghstcp_begin_round(tp, ca);
}

static void ghstcp_init(struct sock *sk)
{
	struct ghstcp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ghstcp_begin_cycle(tcp_sk(sk), ca);
}

static void ghstcp_sample(const struct tcp_sock *tp, struct ghstcp *ca, u32 rtt)
{
	const s64 most = (1 << GHSTCP_SPAN) - 1;
	u64 sent = tp->tcp_mstamp - rtt;
	s64 t, r;

	if (!ca->samples) {
		/* What a round spans, two round trips, is to fit. */
		int bits = fls(rtt) + 1 - GHSTCP_SPAN;

		ca->unit = max(bits, 0);
		ca->sent = sent;
		ca->first = rtt;
	}
	t = clamp_t(s64, (s64)(sent - ca->sent) >> ca->unit, -most, most);
	r = clamp_t(s64, ((s64)rtt - ca->first) >> ca->unit, -most, most);
	ca->times += t;
	ca->rtts += r;
	ca->products += t * r;
	ca->squares += r * r;
	ca->samples++;
}

/* The sum of (x - mean x) (y - mean y) over n samples, from those of x y, x and y; exact but for the last division. */
static s64 ghstcp_moment(s64 products, s64 x, s64 y, s32 n)
{
	s32 rest;
	s64 mean = div_s64_rem(y, n, &rest);

	return products - mean * x - div_s64(rest * x, n);
}

static bool ghstcp_rising(const struct ghstcp *ca)
{
	return ghstcp_moment(ca->products, ca->times, ca->rtts, ca->samples) > 0;
}

static u32 ghstcp_mean(const struct ghstcp *ca)
{
	return ca->first + (s32)(div_s64(ca->rtts, ca->samples) * (1 << ca->unit));
}

static u32 ghstcp_deviation(const struct ghstcp *ca)
{
	s64 moment = ghstcp_moment(ca->squares, ca->rtts, ca->rtts, ca->samples);

	return (u32)int_sqrt64(div_s64(max_t(s64, moment, 0), ca->samples)) << ca->unit;
}

/* The refined rule; the original is its middle case. */
static bool ghstcp_congested(struct ghstcp *ca)
{
	/* 1/sqrt(12) = 0.289 */
	u32 least = min(READ_ONCE(clock_us), 1000000U) * 289 / 1000;
	u32 mean = ghstcp_mean(ca);
	u64 spread;

	if (mean < ca->least) {
		ca->least = mean;
		ca->deviation = ghstcp_deviation(ca);
	}
	spread = max3(ca->deviation, least, 1U);
	if (mean < ca->least + 2 * spread)
		return false;
	return mean >= ca->least + 4 * spread || ghstcp_rising(ca);
}

/* True when a round has ended whose samples say something. */
static bool ghstcp_measure(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghstcp *ca = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR) {
		ghstcp_begin_round(tp, ca);
		return false;
	}
	if (sample->rtt_us > 0 && ca->samples < GHSTCP_SAMPLES)
		ghstcp_sample(tp, ca, sample->rtt_us);
	if (before(tp->snd_una, ca->end_seq))
		return false;
	if (ca->samples >= GHSTCP_FEWEST)
		return true;
	ghstcp_begin_round(tp, ca);
	return false;
}

static void ghstcp_original_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ghstcp *ca = inet_csk_ca(sk);

	if (!ghstcp_measure(sk, sample))
		return;
	ca->reno = ghstcp_rising(ca);
	ghstcp_begin_round(tcp_sk(sk), ca);
}

static void ghstcp_refined_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ghstcp *ca = inet_csk_ca(sk);

	if (!ghstcp_measure(sk, sample))
		return;
	ca->reno = ghstcp_congested(ca);
	ghstcp_begin_round(tcp_sk(sk), ca);
}

/* The table's last row whose w is not above this window, and how far it is from there to the next one, in 1/256. */
static u32 ghstcp_find(u32 w, u32 *part)
{
	u32 row = 0, step, low;

	for (step = 64; step; step /= 2) {
		u32 higher = row + step;

		if (higher <= GHSTCP_LAST && w >= ghstcp_rows[higher].w)
			row = higher;
	}
	low = ghstcp_rows[row].w;
	*part = 0;
	if (row < GHSTCP_LAST && w > low)
		*part = ((w - low) << GHSTCP_A) / (ghstcp_rows[row + 1].w - low);
	return row;
}

/* a(w) in 1/256 packet. */
static u32 ghstcp_increase(const struct ghstcp *ca, u32 w)
{
	u32 part, row;

	if (ca->reno)
		return 1 << GHSTCP_A;
	row = ghstcp_find(w, &part);
	return ((row + 1) << GHSTCP_A) + part;
}

/* b(w) in 1/4096. */
static u32 ghstcp_decrease(const struct ghstcp *ca, u32 w)
{
	u32 part, row, b;

	if (ca->reno)
		return 1 << (GHSTCP_B - 1);
	row = ghstcp_find(w, &part);
	b = ghstcp_rows[row].b;
	if (row < GHSTCP_LAST)
		b -= ((b - ghstcp_rows[row + 1].b) * part) >> GHSTCP_A;
	return b;
}

static void ghstcp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ghstcp *ca = inet_csk_ca(sk);
	u32 w, more;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	w = tcp_snd_cwnd(tp);
	ca->credit += (u64)acked * ghstcp_increase(ca, w);
	more = div64_u64(ca->credit, (u64)w << GHSTCP_A);
	if (more) {
		ca->credit -= more * ((u64)w << GHSTCP_A);
		tcp_snd_cwnd_set(tp, min(w + more, tp->snd_cwnd_clamp));
	}
}

static u32 ghstcp_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghstcp *ca = inet_csk_ca(sk);
	u32 w = tcp_snd_cwnd(tp);
	u32 b = tcp_in_slow_start(tp) ? 1 << (GHSTCP_B - 1) : ghstcp_decrease(ca, w);

	ca->credit = 0;
	ghstcp_begin_cycle(tp, ca);
	return max_t(u32, w - (((u64)w * b) >> GHSTCP_B), 2);
}

static struct tcp_congestion_ops ghstcp_ops[] __read_mostly = {
	{
		.init		= ghstcp_init,
		.ssthresh	= ghstcp_ssthresh,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.cong_avoid	= ghstcp_cong_avoid,
		.pkts_acked	= ghstcp_refined_acked,
		.owner		= THIS_MODULE,
		.name		= "ghstcp",
	}, {
		.init		= ghstcp_init,
		.ssthresh	= ghstcp_ssthresh,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.cong_avoid	= ghstcp_cong_avoid,
		.pkts_acked	= ghstcp_original_acked,
		.owner		= THIS_MODULE,
		.name		= "ghstcp0",
	}, {
		.init		= ghstcp_init,
		.ssthresh	= ghstcp_ssthresh,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.cong_avoid	= ghstcp_cong_avoid,
		.owner		= THIS_MODULE,
		.name		= "hstcp",
	},
};

static void ghstcp_unregister_first(int number)
{
	while (number--)
		tcp_unregister_congestion_control(&ghstcp_ops[number]);
}

static int __init ghstcp_register(void)
{
	int number, error;

	BUILD_BUG_ON(sizeof(struct ghstcp) > ICSK_CA_PRIV_SIZE);
	for (number = 0; number < ARRAY_SIZE(ghstcp_ops); number++) {
		error = tcp_register_congestion_control(&ghstcp_ops[number]);
		if (error) {
			ghstcp_unregister_first(number);
			return error;
		}
	}
	return 0;
}

static void __exit ghstcp_unregister(void)
{
	ghstcp_unregister_first(ARRAY_SIZE(ghstcp_ops));
}

module_init(ghstcp_register);
module_exit(ghstcp_unregister);

MODULE_LICENSE("GPL");
MODULE_ALIAS("tcp_ghstcp0");
MODULE_ALIAS("tcp_hstcp");
MODULE_DESCRIPTION("Gentle HighSpeed TCP, original and refined, and HighSpeed TCP");
