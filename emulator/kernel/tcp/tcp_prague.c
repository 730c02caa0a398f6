// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tcp_prague.c	TCP Prague: answers to the extent of ECN marking, for L4S.
 *
 * After K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion
 * Control", draft-briscoe-iccrg-prague-congestion-control, and the Prague
 * requirements, RFC 9331, section 4. Written from their text, without a look
 * at other implementations.
 *
 *	alpha	+= (frac - alpha) / 16		once a reference round trip
 *	cwnd	*= 1 - alpha/2			at a mark, then not for one such
 *	cwnd	+= (1/M)^2 / cwnd		for each unmarked packet
 *	rate	 = max(cwnd, inflight) / srtt	twice that in slow start
 *
 * frac is the share of packets delivered that came marked. RTT_ref is
 * max(RTT, 25 ms), M is RTT_ref/RTT. In the first 500 round trips RTT_ref is
 * the RTT and M is 1. Slow start ends at the first mark. A loss halves the
 * window.
 *
 * So with M = 1 and a share p of marks that come at random, a window has c/p
 * packets: a reduction each 1 + 1/c round trips, as a mark must come after the
 * rest, gives c = (1 - p) + sqrt((1 - p)^2 + 2 (1 - p)); 2 (1 - p), if there
 * were one in each. With an RTT below 25 ms the rate is c/(p 25 ms).
 *
 * What the packets carry:
 *  - The draft wants ECT(1), by which the network knows L4S. Stock kernels
 *    write ECT(0) into all packets of a connection with ECN, whatever its
 *    congestion control says. A kernel with TCP_CONG_ECT_1, such as the
 *    virtual one, writes ECT(1) instead. Elsewhere they carry ECT(0), which a
 *    queue of L4S takes for classic traffic: only queues that mark each packet
 *    above a small threshold then do what Prague needs.
 *  - SYN, ACKs and retransmissions carry it, too.
 * Feedback: the draft wants Accurate ECN, which Linux 6.1 and 6.12 lack.
 *  - Instead, ECE tells of the packets that an ACK acknowledges as DCTCP's
 *    does (RFC 8257, section 3.2): it is set if these came marked, and when
 *    marks begin or end an ACK goes at once. What is lost with lost ACKs
 *    stays unknown.
 *  - The receiver must do so: its congestion control must be prague or dctcp.
 *    Linux agrees to ECN with a SYN that carries ECT only if it is one of
 *    these. Without ECN the connection is Reno's, and carries no ECT.
 * Decisions where the draft is open, and differences:
 *  - Packets are counted, not bytes, as the kernel does.
 *  - alpha is 1 until the first mark, which so halves what slow start has
 *    doubled; its average begins there.
 *  - A loss less than a reference round trip after a reduction by marks: both
 *    together halve the window.
 *  - In recovery, a packet goes for each two that are delivered until half of
 *    the window is left. Marks meanwhile reduce no more.
 *  - A burst is at most what goes in 244 us (sk_pacing_shift 12), 250 in the
 *    draft, at least a packet.
 *  - The window stays after idleness; what it lets go then is paced.
 *  - There is no detection of a classic ECN queue (an appendix of the draft).
 *  - Losses are detected by RACK, as the kernel does for all.
 */

#include <linux/module.h>
#include <linux/version.h>
#include <linux/math64.h>
#include <linux/inet_diag.h>
#include <net/tcp.h>

/* Newer kernels have another name for it: Accurate ECN has a bit of its own there. */
#ifndef TCP_ECN_OK
#define TCP_ECN_OK		TCP_ECN_MODE_RFC3168
#endif

#define PRAGUE_W		32	/* windows: 2^-32 packets */
#define PRAGUE_ALPHA		20	/* shares: 2^-20 */
#define PRAGUE_G		4	/* the average's gain: 2^-4 */
#define PRAGUE_BURST_SHIFT	12	/* a burst: 2^-12 s */
#define PRAGUE_LEAST		2	/* packets */

static unsigned int rtt_ref __read_mostly = 25000;
static unsigned int rounds __read_mostly = 500;

module_param(rtt_ref, uint, 0644);
MODULE_PARM_DESC(rtt_ref, "us: flows with shorter RTTs are as if theirs were this (0 to 1000000)");
module_param(rounds, uint, 0644);
MODULE_PARM_DESC(rounds, "round trips before rtt_ref is used");

struct prague {
	u64	window;		/* 2^-32 packets */
	u64	reduced_from;	/* the window before the last reduction by marks */
	u32	alpha;		/* 16 alpha, 2^-20 */
	u32	delivered;	/* what tp->delivered was when the average's round began, */
	u32	delivered_ce;	/* and tp->delivered_ce */
	u32	seen_ce;	/* tp->delivered_ce at the ACK before */
	u32	round_seq;	/* a round ends when more than this is acknowledged, */
	u32	round_stamp;	/* us: and not before a reference round trip has passed */
	u32	reduced_seq;	/* the same, of the rest after a reduction */
	u32	reduced_stamp;
	u32	rounds_left;	/* before rtt_ref is used */
	u32	rtt_ref;	/* us */
	u32	prior_cwnd;	/* before a loss */
	u32	prior_rcv_nxt;	/* as receiver: before the packet that came last */
	bool	marked;		/* as sender: a mark came */
	bool	resting;	/* after a reduction */
	bool	recovering;
	bool	ce;		/* as receiver: the packet that came last was marked */
};

static struct tcp_congestion_ops prague_classic;

static u32 prague_packets(u64 window)
{
	return max_t(u64, (window + (1ULL << (PRAGUE_W - 1))) >> PRAGUE_W, PRAGUE_LEAST);
}

/* The reference round trip in us; 0: as long as the true one. */
static u32 prague_rtt_ref(const struct tcp_sock *tp, const struct prague *ca)
{
	return !ca->rounds_left && tp->srtt_us >> 3 < ca->rtt_ref ? ca->rtt_ref : 0;
}

/* Did a reference round trip pass since then, and is something acknowledged that was sent after it? */
static bool prague_passed(const struct tcp_sock *tp, const struct prague *ca, u32 seq, u32 stamp)
{
	return after(tp->snd_una, seq) && (u32)tp->tcp_mstamp - stamp >= prague_rtt_ref(tp, ca);
}

static void prague_begin_round(const struct tcp_sock *tp, struct prague *ca)
{
	ca->round_seq = tp->snd_nxt;
	ca->round_stamp = tp->tcp_mstamp;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

static void prague_rest(const struct tcp_sock *tp, struct prague *ca)
{
	ca->resting = true;
	ca->reduced_seq = tp->snd_nxt;
	ca->reduced_stamp = tp->tcp_mstamp;
}

static void prague_init(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	if (!(tp->ecn_flags & TCP_ECN_OK) && sk->sk_state != TCP_LISTEN && sk->sk_state != TCP_CLOSE) {
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_classic);
		return;
	}
	memset(ca, 0, sizeof(*ca));
	ca->window = (u64)tcp_snd_cwnd(tp) << PRAGUE_W;
	ca->alpha = 1 << (PRAGUE_ALPHA + PRAGUE_G);
	ca->rtt_ref = min(READ_ONCE(rtt_ref), 1000000U);
	ca->rounds_left = READ_ONCE(rounds);
	ca->seen_ce = tp->delivered_ce;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	prague_begin_round(tp, ca);
	sk_pacing_shift_update(sk, PRAGUE_BURST_SHIFT);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void prague_release(struct sock *sk)
{
	sk_pacing_shift_update(sk, 10);
}

/* The average of the share of marks. */
static void prague_update_alpha(const struct tcp_sock *tp, struct prague *ca)
{
	u32 delivered = tp->delivered - ca->delivered;
	u64 share;

	if (!prague_passed(tp, ca, ca->round_seq, ca->round_stamp))
		return;
	if (ca->rounds_left)
		ca->rounds_left--;
	if (ca->marked && delivered) {
		share = min(tp->delivered_ce - ca->delivered_ce, delivered);
		ca->alpha += (u32)div_u64(share << PRAGUE_ALPHA, delivered) - (ca->alpha >> PRAGUE_G);
	}
	prague_begin_round(tp, ca);
}

static void prague_reduce(struct tcp_sock *tp, struct prague *ca)
{
	const u64 mask = (1 << PRAGUE_ALPHA) - 1;
	u64 alpha = ca->alpha >> PRAGUE_G;
	u64 part = (ca->window >> PRAGUE_ALPHA) * alpha + ((ca->window & mask) * alpha >> PRAGUE_ALPHA);

	ca->reduced_from = ca->window;
	ca->window -= part / 2;
	tp->snd_ssthresh = prague_packets(ca->window);
	prague_rest(tp, ca);
}

/* Slow start, or what a round trip adds: a packet, where the RTT is that of reference. */
static void prague_increase(const struct tcp_sock *tp, struct prague *ca, u32 unmarked)
{
	u32 cwnd = max(tcp_snd_cwnd(tp), 1U), ref = prague_rtt_ref(tp, ca);
	u64 ratio, each = 1ULL << PRAGUE_W;

	if (cwnd < tp->snd_ssthresh) {
		ca->window += (u64)unmarked << PRAGUE_W;
		return;
	}
	if (ref) {
		ratio = div_u64((u64)(tp->srtt_us >> 3) << (PRAGUE_W / 2), ref);
		each = ratio * ratio;
	}
	ca->window += div_u64(min(unmarked, 65535U) * each, cwnd);
}

static void prague_recover(const struct tcp_sock *tp, struct prague *ca, u32 acked, u8 state)
{
	u64 least = (u64)tp->snd_ssthresh << PRAGUE_W, less = (u64)acked << (PRAGUE_W - 1);

	if (state == TCP_CA_Recovery)
		ca->window = ca->window > least + less ? ca->window - less : min(ca->window, least);
	else if (tcp_snd_cwnd(tp) < tp->snd_ssthresh)
		ca->window += (u64)acked << PRAGUE_W;
}

static void prague_pace(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u64 rate;

	if (!tp->srtt_us)
		return;
	rate = (u64)tp->mss_cache * max(cwnd, tcp_packets_in_flight(tp)) * (USEC_PER_SEC * 8);
	rate = div_u64(rate, tp->srtt_us);
	if (cwnd < tp->snd_ssthresh / 2)
		rate *= 2;
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void prague_update_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	u32 marks = tp->delivered_ce - ca->seen_ce;

	ca->seen_ce = tp->delivered_ce;
	if (marks && !ca->marked) {
		ca->marked = true;
		prague_begin_round(tp, ca);
	}
	prague_update_alpha(tp, ca);
	if (ca->resting && prague_passed(tp, ca, ca->reduced_seq, ca->reduced_stamp))
		ca->resting = false;
	if (prague_packets(ca->window) != tcp_snd_cwnd(tp))
		ca->window = (u64)tcp_snd_cwnd(tp) << PRAGUE_W;

	if (state >= TCP_CA_Recovery) {
		prague_recover(tp, ca, rs->acked_sacked, state);
	} else {
		if (ca->recovering)
			ca->window = min(ca->window, (u64)tp->snd_ssthresh << PRAGUE_W);
		if (marks && !ca->resting)
			prague_reduce(tp, ca);
		if (rs->acked_sacked > marks && tcp_is_cwnd_limited(sk))
			prague_increase(tp, ca, rs->acked_sacked - marks);
	}
	ca->recovering = state == TCP_CA_Recovery;
	ca->window = min(ca->window, (u64)tp->snd_cwnd_clamp << PRAGUE_W);
	tcp_snd_cwnd_set(tp, prague_packets(ca->window));
	prague_pace(sk);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void prague_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void prague_cong_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
	prague_update_on_ack(sk, rs);
}

/* Reno's answer to a loss, together with what marks took less than a round trip ago. */
static void prague_lose(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u64 from = (u64)tcp_snd_cwnd(tp) << PRAGUE_W;

	ca->prior_cwnd = tcp_snd_cwnd(tp);
	if (ca->resting)
		from = max(from, ca->reduced_from);
	tp->snd_ssthresh = prague_packets(from / 2);
	ca->reduced_from = from / 2;
	prague_rest(tp, ca);
}

static void prague_set_state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery)
		prague_lose(sk);
}

/*
 * The draft's answers are not given when the kernel asks, which is also where
 * it hears of a mark: prague_lose() and prague_reduce() write the threshold.
 */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 prague_undo_cwnd(struct sock *sk)
{
	const struct prague *ca = inet_csk_ca(sk);

	return max(tcp_snd_cwnd(tcp_sk(sk)), ca->prior_cwnd);
}

static u32 __maybe_unused prague_min_tso_segs(struct sock *sk)
{
	return 1;
}

/* As receiver: RFC 8257, section 3.2. */

static void prague_echo(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* Some kernels want flags, too, whatever their version says. */
static inline void prague_send_plain(void (*send)(struct sock *, u32), struct sock *sk, u32 rcv_nxt)
{
	send(sk, rcv_nxt);
}

static inline void prague_send_flags(void (*send)(struct sock *, u32, u16), struct sock *sk, u32 rcv_nxt)
{
	send(sk, rcv_nxt, 0);
}

#define prague_send_ack(sk, rcv_nxt) \
	_Generic(&__tcp_send_ack, void (*)(struct sock *, u32): prague_send_plain, \
		 default: prague_send_flags)(__tcp_send_ack, sk, rcv_nxt)

static void prague_arrived(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	if (ca->ce != ce) {
		/* An ACK that waits is of packets that came like the one before. */
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			prague_echo(tp, ca->ce);
			prague_send_ack(sk, ca->prior_rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce = ce;
	prague_echo(tp, ce);
}

static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	switch (event) {
	case CA_EVENT_ECN_IS_CE:
		prague_arrived(sk, true);
		break;
	case CA_EVENT_ECN_NO_CE:
		prague_arrived(sk, false);
		break;
	case CA_EVENT_LOSS:
		prague_lose(sk);
		break;
	default:
		break;
	}
}

/* In the words of DCTCP, which ss knows: alpha in 1/1024. */
static size_t prague_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) && !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	info->dctcp.dctcp_enabled = 1;
	info->dctcp.dctcp_ce_state = ca->ce;
	info->dctcp.dctcp_alpha = ca->alpha >> (PRAGUE_ALPHA + PRAGUE_G - 10);
	info->dctcp.dctcp_ab_ecn = tp->mss_cache * (tp->delivered_ce - ca->delivered_ce);
	info->dctcp.dctcp_ab_tot = tp->mss_cache * (tp->delivered - ca->delivered);
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

#ifndef TCP_CONG_ECT_1
#define TCP_CONG_ECT_1 0
#endif

static struct tcp_congestion_ops prague_ops __read_mostly = {
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_ECT_1,
	.init		= prague_init,
	.release	= prague_release,
	.ssthresh	= prague_ssthresh,
	.undo_cwnd	= prague_undo_cwnd,
	.cong_control	= prague_cong_control,
	.set_state	= prague_set_state,
	.cwnd_event	= prague_cwnd_event,
/* Kernels with BBRv3's patches ask for the size, and not for the least of it: there it is TCP's own, 2 or more. */
#ifndef TCP_CONG_WANTS_CE_EVENTS
	.min_tso_segs	= prague_min_tso_segs,
#endif
	.get_info	= prague_get_info,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

/* Of a connection without ECN; not registered. */
static struct tcp_congestion_ops prague_classic __read_mostly = {
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= tcp_reno_cong_avoid,
	.owner		= THIS_MODULE,
	.name		= "prague-reno",
};

static int __init prague_register(void)
{
	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&prague_ops);
}

static void __exit prague_unregister(void)
{
	tcp_unregister_congestion_control(&prague_ops);
}

module_init(prague_register);
module_exit(prague_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Prague");
