// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tcp_bbr3.c	BBR, version 3: a model of the path's bandwidth and round-trip
 *		time, and what loss says of how much it can hold.
 *
 * After N. Cardwell, I. Swett, J. Beshay (ed.), "BBR Congestion Control",
 * draft-ietf-ccwg-bbr. Functions bear the draft's names, in this manner:
 * AdaptLongTermModel is bbr3_adapt_long_term_model. Written from its text,
 * without a look at other implementations.
 *
 * Startup, Drain, ProbeBW (DOWN, CRUISE, REFILL, UP) and ProbeRTT, with the
 * draft's constants:
 *	pacing gain	2.77, 0.5, 0.9, 1, 1, 1.25; ProbeRTT 1; 1 % less than that
 *	cwnd gain	2; UP 2.25; ProbeRTT 0.5
 *	loss threshold	2 % of what was in flight; Beta 0.7; headroom 0.15
 *	max_bw		of this probing cycle and the one before
 *	min_rtt		of 10 s; ProbeRTT each 5 s, for 200 ms and a round trip
 * inflight_longterm and inflight_shortterm, bw_shortterm: what older texts
 * call inflight_hi, inflight_lo and bw_lo.
 *
 * Differences from the draft. A stock kernel tells a congestion control of
 * one packet per ACK (struct rate_sample), and keeps nothing else with each:
 *  - RS.lost, what was lost since the ACKed packet was sent, is what was lost
 *    since the loss round's begin: at the round's end that is the same, before
 *    it may be less. A timeout begins it anew: what is ACKed then was sent
 *    after all that was lost.
 *  - RS.tx_in_flight, what was in flight when it was sent, is what has been
 *    delivered since then and what was lost: all of it is one or the other.
 *  - There is no call for each lost packet. Losses are looked at on the ACK
 *    that tells of them; all that it tells of is the draft's packet P.
 *  - Discontiguous ranges lost in Startup: ACKs that told of losses.
 *  - probe_up_acked_per_inc follows the window at each ACK, not that of the
 *    round's begin.
 *  - extra_acked: the largest of this slot and of the one before; a slot is 5
 *    round trips, in Startup 1. Above 65535 packets it is 65535.
 *  - A sample over less than the least RTT does not count: Linux's sampler
 *    calls it invalid.
 *  - The window that ProbeRTT restores is saved before the state changes, and
 *    after idleness extra_acked begins anew.
 * What the draft leaves open:
 *  - ECN. It asks for a response where packets claim ECN, which is up to
 *    sysctl tcp_ecn: a CE mark counts as a packet lost, but for Startup's end.
 *  - Transmissions are paced by the kernel: fq, or TCP's own timer. The send
 *    quantum is the kernel's, as much as goes in 1 ms, at least 2 segments.
 *  - Rates are of TCP's payload, as C.SMSS is.
 */

#include <linux/module.h>
#include <linux/version.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/inet_diag.h>
#include <net/tcp.h>

#define BBR3_BW		24		/* bandwidths: 2^-24 packets/us */
#define BBR3_INFINITE	U32_MAX
#define BBR3_RTT_MAX	(1U << 24)	/* us: no product below overflows */

#define BBR3_LOSS_THRESH	2	/* % */
#define BBR3_BETA		70	/* % */
#define BBR3_HEADROOM		15	/* % */
#define BBR3_PACING_MARGIN	1	/* % */
#define BBR3_MIN_PIPE		4	/* packets */
#define BBR3_FULL_LOSSES	6	/* ranges lost in a round end Startup */
#define BBR3_MIN_RTT_MS		10000
#define BBR3_PROBE_RTT_MS	5000
#define BBR3_PROBE_RTT_FOR_MS	200
#define BBR3_PROBE_WAIT_MS	2000	/* and up to a second more */
#define BBR3_RENO_ROUNDS	63
#define BBR3_EXTRA_ROUNDS	5

/* BPF reads bitfields of the kernel's structures in another way. */
#ifndef READ_BIT
#define READ_BIT(structure, field)	((structure)->field)
#endif

enum bbr3_state {
	BBR3_STARTUP,
	BBR3_DRAIN,
	BBR3_DOWN,
	BBR3_CRUISE,
	BBR3_REFILL,
	BBR3_UP,
	BBR3_PROBE_RTT,
};

enum bbr3_acks {
	BBR3_ACKS_INIT,
	BBR3_ACKS_REFILLING,
	BBR3_ACKS_PROBE_STARTING,
	BBR3_ACKS_PROBE_FEEDBACK,
	BBR3_ACKS_PROBE_STOPPING,
};

enum bbr3_undo {
	BBR3_UNDO_NONE,
	BBR3_UNDO_STARTUP,
	BBR3_UNDO_UP,
};

/* Volumes in packets, bandwidths in 2^-24 packets/us, deliveries as tp->delivered counts. */
struct bbr3 {
	u32	max_bw[2];		/* of the probing cycle before, and of this one */
	u32	bw_shortterm;
	u32	bw_latest;
	u32	inflight_longterm;
	u32	inflight_shortterm;
	u32	inflight_latest;
	u32	min_rtt;		/* us */
	u32	min_rtt_stamp;		/* ms */
	u32	probe_rtt_min_delay;	/* us */
	u32	probe_rtt_min_stamp;	/* ms */
	u32	stamp;			/* ms: when the cycle began, or when ProbeRTT is done */
	u32	next_round_delivered;
	u32	loss_round_delivered;
	u32	loss_round_lost;	/* bbr3_lost() at the loss round's begin */
	u32	full_bw;
	u32	extra_acked_start;	/* us */
	u32	extra_acked_delivered;
	u16	extra_acked[2];		/* of the slot before, and of this one */
	u32	prior_cwnd;
	u32	probe_up_acked;
	u32	undo_bw_shortterm;
	u32	undo_inflight_shortterm;
	u32	undo_inflight_longterm;
	u32	state:3,
		ack_phase:3,
		undo_state:2,
		round_start:1,
		loss_round_start:1,
		loss_in_round:1,
		idle_restart:1,
		full_bw_reached:1,
		full_bw_now:1,
		full_bw_count:2,
		is_bw_probe_sample:1,
		prev_probe_too_high:1,
		prev_probe_precautionary:1,
		probe_rtt_expired:1,
		probe_rtt_timed:1,	/* stamp says when ProbeRTT is done */
		probe_rtt_round_done:1,
		in_recovery:1,		/* at the ACK before */
		rtt_seen:1,
		startup_losses:4,	/* ACKs of this loss round that told of losses */
		drain_rounds:3;
	u32	probe_up_rounds:5,
		rounds_since_probe_up:7,
		probe_wait:10,		/* ms above BBR3_PROBE_WAIT_MS */
		extra_acked_rounds:3;
};

/* What an ACK tells: the draft's RS. */
struct bbr3_sample {
	u32	delivery_rate;		/* 0: none */
	u32	prior_delivered;
	u32	delivered;
	u32	tx_in_flight;
	u32	lost;			/* since the loss round's begin */
	u32	newly_lost;
	u32	newly_acked;
	long	rtt;			/* us; below 0: none */
	bool	app_limited;
};

static u32 bbr3_now(const struct tcp_sock *tp)
{
	return div_u64(tp->tcp_mstamp, USEC_PER_MSEC);
}

/* Packets lost so far, and those that came marked. */
static u32 bbr3_lost(const struct tcp_sock *tp)
{
	return tp->lost + tp->delivered_ce;
}

static u32 bbr3_max_bw(const struct bbr3 *ca)
{
	return max(ca->max_bw[0], ca->max_bw[1]);
}

static u32 bbr3_bw(const struct bbr3 *ca)
{
	return min(bbr3_max_bw(ca), ca->bw_shortterm);
}

static bool bbr3_in_probe_bw(const struct bbr3 *ca)
{
	return ca->state >= BBR3_DOWN && ca->state <= BBR3_UP;
}

static bool bbr3_is_probing_bw(const struct bbr3 *ca)
{
	return ca->state == BBR3_STARTUP || ca->state == BBR3_REFILL || ca->state == BBR3_UP;
}

/* In hundredths. */
static u32 bbr3_pacing_gain(const struct bbr3 *ca)
{
	switch (ca->state) {
	case BBR3_STARTUP:
		return 277;
	case BBR3_DRAIN:
		return 50;
	case BBR3_DOWN:
		return 90;
	case BBR3_UP:
		return 125;
	default:
		return 100;
	}
}

static u32 bbr3_cwnd_gain(const struct bbr3 *ca)
{
	switch (ca->state) {
	case BBR3_UP:
		return 225;
	case BBR3_PROBE_RTT:
		return 50;
	default:
		return 200;
	}
}

static void bbr3_start_round(const struct tcp_sock *tp, struct bbr3 *ca)
{
	ca->next_round_delivered = tp->delivered;
}

static void bbr3_reset_full_bw(struct bbr3 *ca)
{
	ca->full_bw = 0;
	ca->full_bw_count = 0;
	ca->full_bw_now = 0;
}

static void bbr3_reset_congestion_signals(struct bbr3 *ca)
{
	ca->loss_in_round = 0;
	ca->bw_latest = 0;
	ca->inflight_latest = 0;
}

static void bbr3_reset_short_term_model(struct bbr3 *ca)
{
	ca->bw_shortterm = BBR3_INFINITE;
	ca->inflight_shortterm = BBR3_INFINITE;
}

/* Rate, quantum and window: "Updating Control Parameters". */

/* Bytes of payload a second, from a bandwidth and a gain in hundredths. */
static u64 bbr3_rate(const struct tcp_sock *tp, u32 bw, u32 gain)
{
	u64 rate = (u64)bw * tp->mss_cache * gain;

	return rate * (USEC_PER_SEC / 10000 * (100 - BBR3_PACING_MARGIN)) >> BBR3_BW;
}

static void bbr3_pace(struct sock *sk, u64 rate)
{
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void bbr3_init_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 rtt = USEC_PER_MSEC;

	if (tp->srtt_us) {
		rtt = max(tp->srtt_us >> 3, 1U);
		ca->rtt_seen = 1;
	}
	bbr3_pace(sk, bbr3_rate(tp, div_u64((u64)tcp_snd_cwnd(tp) << BBR3_BW, rtt), 277));
}

static void bbr3_set_pacing_rate(struct sock *sk, u32 gain)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	u64 rate = bbr3_rate(tcp_sk(sk), bbr3_bw(ca), gain);

	if (!ca->rtt_seen && tcp_sk(sk)->srtt_us)
		bbr3_init_pacing_rate(sk);
	if (ca->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		bbr3_pace(sk, rate);
}

static u32 bbr3_bdp_multiple(const struct bbr3 *ca, u32 bw, u32 gain)
{
	if (ca->min_rtt == BBR3_INFINITE)
		return TCP_INIT_CWND;
	return ((u64)bw * ca->min_rtt * gain / 100 + (1 << BBR3_BW) - 1) >> BBR3_BW;
}

static u32 bbr3_quantization_budget(const struct sock *sk, u32 inflight)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 quantum = min_t(u64, READ_ONCE(sk->sk_pacing_rate) >> READ_ONCE(sk->sk_pacing_shift), 65536);
	u32 packets = max_t(u32, div_u64(quantum, max(tcp_sk(sk)->mss_cache, 1U)), 2);

	inflight = max3(inflight, 3 * packets, (u32)BBR3_MIN_PIPE);
	return ca->state == BBR3_UP ? inflight + 2 : inflight;
}

static u32 bbr3_inflight(const struct sock *sk, u32 bw)
{
	return bbr3_quantization_budget(sk, bbr3_bdp_multiple(inet_csk_ca(sk), bw, 100));
}

static u32 bbr3_inflight_with_headroom(const struct bbr3 *ca)
{
	u32 headroom;

	if (ca->inflight_longterm == BBR3_INFINITE)
		return BBR3_INFINITE;
	headroom = max_t(u64, (u64)ca->inflight_longterm * BBR3_HEADROOM / 100, 1);
	return max_t(s64, (s64)ca->inflight_longterm - headroom, BBR3_MIN_PIPE);
}

static u32 bbr3_probe_rtt_cwnd(const struct bbr3 *ca)
{
	return max_t(u32, bbr3_bdp_multiple(ca, bbr3_bw(ca), 50), BBR3_MIN_PIPE);
}

static u32 bbr3_target_inflight(const struct tcp_sock *tp, const struct bbr3 *ca)
{
	return min(bbr3_bdp_multiple(ca, bbr3_bw(ca), 100), tcp_snd_cwnd(tp));
}

static void bbr3_save_cwnd(const struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery && ca->state != BBR3_PROBE_RTT)
		ca->prior_cwnd = cwnd;
	else
		ca->prior_cwnd = max(ca->prior_cwnd, cwnd);
}

static void bbr3_restore_cwnd(struct tcp_sock *tp, const struct bbr3 *ca)
{
	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), ca->prior_cwnd));
}

static u32 bbr3_bound_cwnd_for_model(const struct bbr3 *ca, u32 cwnd)
{
	u32 cap = BBR3_INFINITE;

	if (ca->state == BBR3_PROBE_RTT || ca->state == BBR3_CRUISE)
		cap = bbr3_inflight_with_headroom(ca);
	else if (bbr3_in_probe_bw(ca))
		cap = ca->inflight_longterm;
	cap = max_t(u32, min(cap, ca->inflight_shortterm), BBR3_MIN_PIPE);
	return min(cwnd, cap);
}

static void bbr3_set_cwnd(struct sock *sk, const struct bbr3_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 extra = max(ca->extra_acked[0], ca->extra_acked[1]);
	u32 most = bbr3_bdp_multiple(ca, bbr3_bw(ca), bbr3_cwnd_gain(ca)) + extra;

	most = bbr3_quantization_budget(sk, most);
	if (ca->full_bw_reached)
		cwnd = min(cwnd + rs->newly_acked, most);
	else if (cwnd < most || tp->delivered < TCP_INIT_CWND)
		cwnd += rs->newly_acked;
	cwnd = max_t(u32, cwnd, BBR3_MIN_PIPE);
	if (ca->state == BBR3_PROBE_RTT)
		cwnd = min(cwnd, bbr3_probe_rtt_cwnd(ca));
	cwnd = bbr3_bound_cwnd_for_model(ca, cwnd);
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
}

/* The states' begins. */

static void bbr3_start_probe_bw_down(const struct tcp_sock *tp, struct bbr3 *ca)
{
	bbr3_reset_congestion_signals(ca);
	/* PickProbeWait */
	ca->rounds_since_probe_up = get_random_u32() & 1;
	ca->probe_wait = (u64)get_random_u32() * 1001 >> 32;
	ca->stamp = bbr3_now(tp);
	ca->ack_phase = BBR3_ACKS_PROBE_STOPPING;
	bbr3_start_round(tp, ca);
	ca->state = BBR3_DOWN;
}

static void bbr3_start_probe_bw_refill(const struct tcp_sock *tp, struct bbr3 *ca)
{
	bbr3_reset_short_term_model(ca);
	ca->probe_up_rounds = 0;
	ca->probe_up_acked = 0;
	ca->prev_probe_precautionary = 0;
	ca->ack_phase = BBR3_ACKS_REFILLING;
	bbr3_start_round(tp, ca);
	ca->state = BBR3_REFILL;
}

/* RaiseInflightLongtermSlope: a packet more for each window >> (probe_up_rounds - 1) that is acknowledged. */
static void bbr3_raise_slope(struct bbr3 *ca)
{
	ca->probe_up_rounds = min_t(u32, ca->probe_up_rounds + 1, 30);
}

static void bbr3_start_probe_bw_up(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	ca->ack_phase = BBR3_ACKS_PROBE_STARTING;
	bbr3_start_round(tp, ca);
	bbr3_reset_full_bw(ca);
	ca->full_bw = rs->delivery_rate;
	ca->state = BBR3_UP;
	bbr3_raise_slope(ca);
}

static void bbr3_exit_probe_rtt(const struct tcp_sock *tp, struct bbr3 *ca)
{
	bbr3_reset_short_term_model(ca);
	if (ca->full_bw_reached) {
		bbr3_start_probe_bw_down(tp, ca);
		ca->state = BBR3_CRUISE;
	} else {
		ca->state = BBR3_STARTUP;
	}
}

/* The model: "Updating Network Path Model Parameters". */

static void bbr3_update_max_bw(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	/* UpdateRound */
	ca->round_start = 0;
	if (rs->delivery_rate && !before(rs->prior_delivered, ca->next_round_delivered)) {
		bbr3_start_round(tp, ca);
		ca->rounds_since_probe_up = min_t(u32, ca->rounds_since_probe_up + 1, 127);
		ca->round_start = 1;
	}
	if (rs->delivery_rate && (rs->delivery_rate >= bbr3_max_bw(ca) || !rs->app_limited))
		ca->max_bw[1] = max(ca->max_bw[1], rs->delivery_rate);
}

static void bbr3_save_state_upon_loss(const struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	bbr3_save_cwnd(sk);
	ca->undo_state = BBR3_UNDO_NONE;
	ca->undo_bw_shortterm = ca->bw_shortterm;
	ca->undo_inflight_shortterm = ca->inflight_shortterm;
	ca->undo_inflight_longterm = ca->inflight_longterm;
}

static void bbr3_note_loss(const struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->loss_in_round) {
		ca->loss_round_delivered = tcp_sk(sk)->delivered;
		bbr3_save_state_upon_loss(sk);
	}
	ca->loss_in_round = 1;
}

static void bbr3_update_latest_delivery_signals(const struct tcp_sock *tp, struct bbr3 *ca,
						const struct bbr3_sample *rs)
{
	ca->loss_round_start = 0;
	if (!rs->delivery_rate)
		return;
	ca->bw_latest = max(ca->bw_latest, rs->delivery_rate);
	ca->inflight_latest = max(ca->inflight_latest, rs->delivered);
	if (!before(rs->prior_delivered, ca->loss_round_delivered)) {
		ca->loss_round_delivered = tp->delivered;
		ca->loss_round_start = 1;
	}
}

static void bbr3_advance_latest_delivery_signals(const struct tcp_sock *tp, struct bbr3 *ca,
						 const struct bbr3_sample *rs)
{
	if (!ca->loss_round_start)
		return;
	ca->bw_latest = rs->delivery_rate;
	ca->inflight_latest = rs->delivered;
	ca->loss_round_lost = bbr3_lost(tp);
	ca->startup_losses = 0;
}

static u32 bbr3_beta(u32 value)
{
	return (u64)value * BBR3_BETA / 100;
}

/* Once per round trip: AdaptLowerBoundsFromCongestion. */
static void bbr3_adapt_lower_bounds(const struct tcp_sock *tp, struct bbr3 *ca)
{
	if (bbr3_is_probing_bw(ca) || !ca->loss_in_round)
		return;
	if (ca->bw_shortterm == BBR3_INFINITE)
		ca->bw_shortterm = bbr3_max_bw(ca);
	if (ca->inflight_shortterm == BBR3_INFINITE)
		ca->inflight_shortterm = tcp_snd_cwnd(tp);
	ca->bw_shortterm = max(ca->bw_latest, bbr3_beta(ca->bw_shortterm));
	ca->inflight_shortterm = max(ca->inflight_latest, bbr3_beta(ca->inflight_shortterm));
}

static void bbr3_update_congestion_signals(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	bbr3_update_max_bw(tp, ca, rs);
	if (!ca->loss_round_start)
		return;
	bbr3_adapt_lower_bounds(tp, ca);
	ca->loss_in_round = 0;
}

static void bbr3_update_ack_aggregation(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	u32 now = tp->tcp_mstamp, extra;
	u64 expected;

	if (!rs->newly_acked)
		return;
	if (ca->round_start && ++ca->extra_acked_rounds >= (ca->full_bw_reached ? BBR3_EXTRA_ROUNDS : 1)) {
		ca->extra_acked_rounds = 0;
		ca->extra_acked[0] = ca->extra_acked[1];
		ca->extra_acked[1] = 0;
	}
	expected = (u64)bbr3_bw(ca) * (now - ca->extra_acked_start) >> BBR3_BW;
	if (ca->extra_acked_delivered <= expected) {
		ca->extra_acked_delivered = 0;
		ca->extra_acked_start = now;
		expected = 0;
	}
	ca->extra_acked_delivered += rs->newly_acked;
	extra = min3(ca->extra_acked_delivered - (u32)expected, tcp_snd_cwnd(tp), 65535U);
	ca->extra_acked[1] = max_t(u32, ca->extra_acked[1], extra);
}

static void bbr3_check_full_bw_reached(struct bbr3 *ca, const struct bbr3_sample *rs)
{
	if (ca->full_bw_now || !ca->round_start || rs->app_limited)
		return;
	if ((u64)rs->delivery_rate * 4 >= (u64)ca->full_bw * 5) {
		bbr3_reset_full_bw(ca);
		ca->full_bw = rs->delivery_rate;
		return;
	}
	ca->full_bw_now = ++ca->full_bw_count >= 3;
	if (ca->full_bw_now)
		ca->full_bw_reached = 1;
}

static bool bbr3_is_inflight_too_high(const struct tcp_sock *tp, const struct bbr3_sample *rs)
{
	if (rs->lost && !READ_BIT(tp, rx_opt.sack_ok))
		return true;
	return (u64)rs->lost * 100 > (u64)rs->tx_in_flight * BBR3_LOSS_THRESH;
}

static void bbr3_check_startup_high_loss(const struct sock *sk, const struct bbr3_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->full_bw_reached)
		return;
	if (rs->newly_lost && ca->startup_losses < 15)
		ca->startup_losses++;
	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery || !bbr3_is_inflight_too_high(tp, rs))
		return;
	if (READ_BIT(tp, rx_opt.sack_ok) && (!ca->loss_round_start || ca->startup_losses < BBR3_FULL_LOSSES))
		return;
	ca->undo_state = BBR3_UNDO_STARTUP;
	ca->full_bw_reached = 1;
	ca->inflight_longterm = max(bbr3_bdp_multiple(ca, bbr3_bw(ca), 100), ca->inflight_latest);
}

static void bbr3_check_startup_and_drain_done(const struct sock *sk, const struct bbr3_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	bbr3_check_startup_high_loss(sk, rs);
	if (ca->state == BBR3_STARTUP && ca->full_bw_reached) {
		ca->state = BBR3_DRAIN;
		ca->drain_rounds = 0;
	} else if (ca->state == BBR3_DRAIN && ca->round_start) {
		ca->drain_rounds++;
	}
	if (ca->state == BBR3_DRAIN &&
	    (tcp_packets_in_flight(tp) <= bbr3_inflight(sk, bbr3_bw(ca)) || ca->drain_rounds > 3))
		bbr3_start_probe_bw_down(tp, ca);
}

/* InflightAtLoss: how much was in flight when losses passed the threshold, which may be amid what this ACK tells of. */
static u32 bbr3_inflight_at_loss(const struct bbr3_sample *rs)
{
	s64 size = max(rs->newly_lost, 1U);
	s64 inflight_prev = (s64)rs->tx_in_flight - size;
	s64 lost_prev = (s64)rs->lost - size;
	s64 prefix = BBR3_LOSS_THRESH * inflight_prev - 100 * lost_prev;

	return max_t(s64, inflight_prev + div_s64(prefix, 100 - BBR3_LOSS_THRESH), 1);
}

static void bbr3_handle_inflight_too_high(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	ca->prev_probe_too_high = 1;
	ca->is_bw_probe_sample = 0;
	if (!rs->app_limited)
		ca->inflight_longterm = max(bbr3_inflight_at_loss(rs), bbr3_beta(bbr3_target_inflight(tp, ca)));
	if (ca->state == BBR3_UP) {
		ca->undo_state = BBR3_UNDO_UP;
		bbr3_start_probe_bw_down(tp, ca);
	}
}

static void bbr3_probe_inflight_longterm_upward(const struct tcp_sock *tp, struct bbr3 *ca,
						const struct bbr3_sample *rs)
{
	u32 each, more;

	if (!READ_BIT(tp, is_cwnd_limited) || tcp_snd_cwnd(tp) < ca->inflight_longterm)
		return;
	each = max(tcp_snd_cwnd(tp) >> (ca->probe_up_rounds - 1), 1U);
	ca->probe_up_acked += rs->newly_acked;
	more = ca->probe_up_acked / each;
	ca->probe_up_acked -= more * each;
	ca->inflight_longterm += more;
	if (ca->round_start)
		bbr3_raise_slope(ca);
}

/* True if it decided on a state. */
static bool bbr3_adapt_long_term_model(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	if (ca->ack_phase == BBR3_ACKS_PROBE_STARTING && ca->round_start)
		ca->ack_phase = BBR3_ACKS_PROBE_FEEDBACK;
	if (ca->ack_phase == BBR3_ACKS_PROBE_STOPPING && ca->round_start) {
		ca->is_bw_probe_sample = 0;
		ca->ack_phase = BBR3_ACKS_INIT;
		if (bbr3_in_probe_bw(ca) && !rs->app_limited) {
			/* AdvanceMaxBwFilter */
			ca->max_bw[0] = ca->max_bw[1];
			ca->max_bw[1] = 0;
		}
		if (bbr3_in_probe_bw(ca) && ca->prev_probe_precautionary && !ca->prev_probe_too_high) {
			bbr3_start_probe_bw_refill(tp, ca);
			return true;
		}
	}
	if (bbr3_is_inflight_too_high(tp, rs)) {
		if (ca->is_bw_probe_sample)
			bbr3_handle_inflight_too_high(tp, ca, rs);
		return false;
	}
	if (ca->inflight_longterm == BBR3_INFINITE)
		return false;
	ca->inflight_longterm = max(ca->inflight_longterm, rs->tx_in_flight);
	if (ca->state == BBR3_UP)
		bbr3_probe_inflight_longterm_upward(tp, ca, rs);
	return false;
}

static bool bbr3_is_time_to_probe_bw(const struct tcp_sock *tp, const struct bbr3 *ca)
{
	if (bbr3_now(tp) - ca->stamp > BBR3_PROBE_WAIT_MS + ca->probe_wait)
		return true;
	return ca->rounds_since_probe_up >= min_t(u32, bbr3_target_inflight(tp, ca), BBR3_RENO_ROUNDS);
}

static bool bbr3_is_time_to_cruise(const struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 inflight = tcp_packets_in_flight(tcp_sk(sk));

	return inflight <= bbr3_inflight_with_headroom(ca) && inflight <= bbr3_inflight(sk, bbr3_max_bw(ca));
}

static bool bbr3_is_time_to_go_down(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	if (ca->prev_probe_too_high && tcp_packets_in_flight(tp) >= ca->inflight_longterm) {
		ca->prev_probe_precautionary = 1;
		return true;
	}
	if (READ_BIT(tp, is_cwnd_limited) && tcp_snd_cwnd(tp) >= ca->inflight_longterm) {
		bbr3_reset_full_bw(ca);
		ca->full_bw = rs->delivery_rate;
		return false;
	}
	return ca->full_bw_now;
}

static void bbr3_update_probe_bw_cycle_phase(const struct sock *sk, const struct bbr3_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->full_bw_reached || bbr3_adapt_long_term_model(tp, ca, rs))
		return;
	switch (ca->state) {
	case BBR3_DOWN:
	case BBR3_CRUISE:
		if (bbr3_is_time_to_probe_bw(tp, ca))
			bbr3_start_probe_bw_refill(tp, ca);
		else if (ca->state == BBR3_DOWN && bbr3_is_time_to_cruise(sk))
			ca->state = BBR3_CRUISE;
		break;
	case BBR3_REFILL:
		if (ca->round_start) {
			ca->is_bw_probe_sample = 1;
			bbr3_start_probe_bw_up(tp, ca, rs);
		}
		break;
	case BBR3_UP:
		if (bbr3_is_time_to_go_down(tp, ca, rs)) {
			ca->prev_probe_too_high = 0;
			bbr3_start_probe_bw_down(tp, ca);
		}
		break;
	}
}

static void bbr3_update_min_rtt(const struct tcp_sock *tp, struct bbr3 *ca, const struct bbr3_sample *rs)
{
	u32 now = bbr3_now(tp);

	ca->probe_rtt_expired = now - ca->probe_rtt_min_stamp > BBR3_PROBE_RTT_MS;
	if (rs->rtt >= 0 && (rs->rtt < ca->probe_rtt_min_delay || ca->probe_rtt_expired)) {
		ca->probe_rtt_min_delay = clamp_t(u32, rs->rtt, 1, BBR3_RTT_MAX);
		ca->probe_rtt_min_stamp = now;
	}
	if (ca->probe_rtt_min_delay < ca->min_rtt || now - ca->min_rtt_stamp > BBR3_MIN_RTT_MS) {
		ca->min_rtt = ca->probe_rtt_min_delay;
		ca->min_rtt_stamp = ca->probe_rtt_min_stamp;
	}
}

static void bbr3_check_probe_rtt_done(struct tcp_sock *tp, struct bbr3 *ca)
{
	u32 now = bbr3_now(tp);

	if (!ca->probe_rtt_timed || (s32)(now - ca->stamp) <= 0)
		return;
	ca->probe_rtt_min_stamp = now;
	bbr3_restore_cwnd(tp, ca);
	bbr3_exit_probe_rtt(tp, ca);
}

static void bbr3_handle_probe_rtt(struct tcp_sock *tp, struct bbr3 *ca)
{
	/* MarkConnectionAppLimited */
	tp->app_limited = max(tp->delivered + tcp_packets_in_flight(tp), 1U);
	if (!ca->probe_rtt_timed) {
		if (tcp_packets_in_flight(tp) > bbr3_probe_rtt_cwnd(ca))
			return;
		ca->stamp = bbr3_now(tp) + BBR3_PROBE_RTT_FOR_MS;
		ca->probe_rtt_timed = 1;
		ca->probe_rtt_round_done = 0;
		bbr3_start_round(tp, ca);
		return;
	}
	if (ca->round_start)
		ca->probe_rtt_round_done = 1;
	if (ca->probe_rtt_round_done)
		bbr3_check_probe_rtt_done(tp, ca);
}

static void bbr3_check_probe_rtt(struct sock *sk, const struct bbr3_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->state != BBR3_PROBE_RTT && ca->probe_rtt_expired && !ca->idle_restart) {
		bbr3_save_cwnd(sk);
		ca->state = BBR3_PROBE_RTT;
		ca->probe_rtt_timed = 0;
		ca->ack_phase = BBR3_ACKS_PROBE_STOPPING;
		bbr3_start_round(tp, ca);
	}
	if (ca->state == BBR3_PROBE_RTT)
		bbr3_handle_probe_rtt(tp, ca);
	if (rs->delivered)
		ca->idle_restart = 0;
}

/* What the kernel calls. */

static void bbr3_take_sample(const struct tcp_sock *tp, const struct bbr3 *ca, const struct rate_sample *rs,
			     struct bbr3_sample *sample)
{
	sample->delivery_rate = 0;
	sample->delivered = 0;
	if (rs->delivered > 0 && rs->interval_us > 0) {
		sample->delivered = rs->delivered;
		sample->delivery_rate = div64_u64((u64)rs->delivered << BBR3_BW, rs->interval_us);
	}
	sample->prior_delivered = rs->prior_delivered;
	sample->lost = bbr3_lost(tp) - ca->loss_round_lost;
	sample->tx_in_flight = sample->delivered + sample->lost;
	sample->newly_lost = max(rs->losses, 0);
	sample->newly_acked = rs->acked_sacked;
	sample->rtt = rs->rtt_us;
	sample->app_limited = rs->is_app_limited;
}

static void bbr3_update_on_ack(struct sock *sk, const struct rate_sample *kernels)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_sample rs;
	bool in_recovery = inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;

	bbr3_take_sample(tp, ca, kernels, &rs);
	if (rs.newly_lost || (rs.delivered && kernels->delivered_ce > 0))
		bbr3_note_loss(sk);
	bbr3_update_latest_delivery_signals(tp, ca, &rs);
	bbr3_update_congestion_signals(tp, ca, &rs);
	bbr3_update_ack_aggregation(tp, ca, &rs);
	if (rs.delivery_rate) {
		bbr3_check_full_bw_reached(ca, &rs);
		bbr3_check_startup_and_drain_done(sk, &rs);
		bbr3_update_probe_bw_cycle_phase(sk, &rs);
	}
	bbr3_update_min_rtt(tp, ca, &rs);
	bbr3_check_probe_rtt(sk, &rs);
	bbr3_advance_latest_delivery_signals(tp, ca, &rs);

	if (ca->in_recovery && !in_recovery)
		bbr3_restore_cwnd(tp, ca);
	ca->in_recovery = in_recovery;
	bbr3_set_pacing_rate(sk, bbr3_pacing_gain(ca));
	bbr3_set_cwnd(sk, &rs);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void bbr3_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void bbr3_cong_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
	bbr3_update_on_ack(sk, rs);
}

static void bbr3_init(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->min_rtt = tp->srtt_us ? clamp_t(u32, tp->srtt_us >> 3, 1, BBR3_RTT_MAX) : BBR3_INFINITE;
	ca->probe_rtt_min_delay = ca->min_rtt;
	ca->min_rtt_stamp = ca->probe_rtt_min_stamp = bbr3_now(tp);
	ca->extra_acked_start = tp->tcp_mstamp;
	ca->inflight_longterm = BBR3_INFINITE;
	ca->next_round_delivered = ca->loss_round_delivered = tp->delivered;
	ca->loss_round_lost = bbr3_lost(tp);
	bbr3_reset_short_term_model(ca);
	bbr3_init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* OnEnterRTO and OnEnterFastRecovery: Linux asks for the threshold then. There is none. */
static u32 bbr3_ssthresh(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	bbr3_save_state_upon_loss(sk);
	ca->in_recovery = 1;
	return tcp_sk(sk)->snd_ssthresh;
}

/* A timeout; the kernel has counted what it takes for lost. */
static void bbr3_set_state(struct sock *sk, u8 state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	ca->loss_in_round = 1;
	ca->loss_round_delivered = tp->delivered;
	ca->loss_round_lost = bbr3_lost(tp);
}

/* HandleSpuriousLossDetection */
static u32 bbr3_undo_cwnd(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->loss_in_round = 0;
	bbr3_reset_full_bw(ca);
	ca->bw_shortterm = max(ca->bw_shortterm, ca->undo_bw_shortterm);
	ca->inflight_shortterm = max(ca->inflight_shortterm, ca->undo_inflight_shortterm);
	ca->inflight_longterm = max(ca->inflight_longterm, ca->undo_inflight_longterm);
	if (ca->undo_state == BBR3_UNDO_STARTUP && ca->state != BBR3_STARTUP) {
		ca->full_bw_reached = 0;
		if (ca->state != BBR3_PROBE_RTT)
			ca->state = BBR3_STARTUP;
	} else if (ca->undo_state == BBR3_UNDO_UP && ca->state != BBR3_UP && ca->state != BBR3_PROBE_RTT) {
		bbr3_start_probe_bw_refill(tp, ca);
	}
	ca->undo_state = BBR3_UNDO_NONE;
	return max(tcp_snd_cwnd(tp), ca->prior_cwnd);
}

/* HandleRestartFromIdle */
static void bbr3_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = 1;
	ca->extra_acked_start = tp->tcp_mstamp;
	ca->extra_acked_delivered = 0;
	if (bbr3_in_probe_bw(ca))
		bbr3_set_pacing_rate(sk, 100);
	else if (ca->state == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(tp, ca);
}

/* The window doubles each round trip in Startup, and what a recovery sends comes on top. */
static u32 bbr3_sndbuf_expand(struct sock *sk)
{
	return 3;
}

#ifndef __bpf__
static size_t bbr3_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 bw = (u64)bbr3_bw(ca) * tcp_sk(sk)->mss_cache * USEC_PER_SEC >> BBR3_BW;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1))) && !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = ca->min_rtt;
	info->bbr.bbr_pacing_gain = bbr3_pacing_gain(ca) * 256 / 100;
	info->bbr.bbr_cwnd_gain = bbr3_cwnd_gain(ca) * 256 / 100;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}
#endif

static struct tcp_congestion_ops bbr3_ops __read_mostly = {
	.init		= bbr3_init,
	.ssthresh	= bbr3_ssthresh,
	.undo_cwnd	= bbr3_undo_cwnd,
	.set_state	= bbr3_set_state,
	.cong_control	= bbr3_cong_control,
	.cwnd_event	= bbr3_cwnd_event,
	.sndbuf_expand	= bbr3_sndbuf_expand,
#ifndef __bpf__
	.get_info	= bbr3_get_info,
#endif
	.owner		= THIS_MODULE,
	.name		= "bbr3",
};

static int __init bbr3_register(void)
{
	BUILD_BUG_ON(sizeof(struct bbr3) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&bbr3_ops);
}

static void __exit bbr3_unregister(void)
{
	tcp_unregister_congestion_control(&bbr3_ops);
}

module_init(bbr3_register);
module_exit(bbr3_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("BBR, version 3");
