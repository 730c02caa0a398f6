// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tcp_external.c	A window and a pacing rate that a program outside sets.
 *
 * The module is for User-Mode Linux in simulated time. At the events that the
 * program asks for it writes a record to a socket of the host, and waits
 * until the answer is there: the kernel stands still meanwhile, and simulated
 * time with it. The socket keeps the bounds of messages (SOCK_SEQPACKET), and
 * is the standard input of the kernel's process. The user's page on external
 * controllers has the table of all fields.
 *
 * With thinks_ns an answer takes effect so much later in simulated time. Until
 * then its flow has no other record: what happens meanwhile is in the record
 * that follows at once.
 *
 * Losses are repaired as Linux does it for all. The window is the program's
 * alone, except after a retransmission timeout, which sets it to what is in
 * flight and one packet, and unless the program leaves the reduction after a
 * loss to Linux (RFC 6937): then it sets ssthresh, to which Linux goes. That
 * is as Linux has it for controls without cong_control, except for a loss of
 * which a timer tells (RACK): the reduction begins with the next ACK then.
 * A pacing rate that the program does not set is Linux's, and paces nothing.
 *
 * The records show its state, so the series has none: congestion_state: none
 *
 * A program that closes the socket, answers something else or does not answer
 * (where the socket has a timeout) ends the run: the kernel panics.
 */

#include <linux/module.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/version.h>
#include <net/tcp.h>
#include <os.h>

#define EXTERNAL_SOCKET		0	/* standard input of the host's process */
#define EXTERNAL_MAGIC		0x4e415745	/* "EWAN" */
#define EXTERNAL_VERSION	1
#define EXTERNAL_CWND_MAX	0x7fffffffU
#define EXTERNAL_SHORTEST_NS	10000	/* interval */
#define EXTERNAL_LOCKED_NS	1000	/* before the next attempt */

enum external_event {
	EXTERNAL_ACK		= 1,
	EXTERNAL_INTERVAL	= 2,
	EXTERNAL_LOSS		= 4,
	EXTERNAL_TIMEOUT	= 8,
	EXTERNAL_ECN		= 16,
	EXTERNAL_START		= 32,
	EXTERNAL_END		= 64,
};

#define EXTERNAL_CHOICE	(EXTERNAL_ACK | EXTERNAL_INTERVAL | EXTERNAL_LOSS | \
			 EXTERNAL_TIMEOUT | EXTERNAL_ECN)

enum external_flag {
	EXTERNAL_APP_LIMITED	= 1,
	EXTERNAL_CWND_LIMITED	= 2,
	EXTERNAL_ADVANCED	= 4,
};

/* Who reduces the window after a loss. */
enum external_reduction {
	EXTERNAL_UNCHANGED,
	EXTERNAL_BY_PROGRAM,
	EXTERNAL_BY_LINUX,
};

/* Of net/ipv4/tcp_input.c: what an ACK does. */
#define EXTERNAL_DATA_ACKED		0x04
#define EXTERNAL_SND_UNA_ADVANCED	0x400

/* All numbers have the byte order of x86, little-endian. */
struct external_record {
	u32	magic;
	u16	version;
	u16	bytes;
	u32	flow;
	u32	events;
	u64	time_ns;
	u64	rtt_ns;
	u64	min_rtt_ns;
	u64	srtt_ns;
	u64	delivered_packets;
	u64	delivery_rate;
	u64	lost_packets;
	u64	marked_packets;
	u64	pacing_rate;
	u32	in_flight_packets;
	u32	cwnd_packets;
	u32	ssthresh_packets;
	u32	mss_bytes;
	u32	recovery_state;
	u32	flags;
	u32	acked_packets;
	u32	merged_events;
	u8	source[16];
	u8	destination[16];
	u16	source_port;
	u16	destination_port;
	u32	prior_cwnd_packets;
};

struct external_answer {
	u32	magic;
	u16	version;
	u16	bytes;
	u32	flow;
	u32	cwnd_packets;
	u64	pacing_rate;
	u64	interval_ns;
	u32	ask;
	u32	ssthresh_packets;
	u32	reduction;
	u32	reserved;
};

static_assert(sizeof(struct external_record) == 160);
static_assert(sizeof(struct external_answer) == 48);

static ulong thinks_ns __read_mostly;
module_param(thinks_ns, ulong, 0444);
MODULE_PARM_DESC(thinks_ns, "simulated time until an answer takes effect, ns");

struct external {
	struct sock		*sk;
	struct hrtimer		interval;
	struct hrtimer		thought;	/* the answer takes effect */
	struct external_record	record;		/* at the last event */
	struct external_answer	answer;
	u64			interval_ns;
	u64			delivery_rate;
	u32			flow;
	u32			ask;		/* events with a record */
	u32			pending;	/* events since the last one */
	u32			merged;		/* their number */
	u32			acked;
	u32			rtt_us;
	bool			thinking;
	bool			paced;		/* the program sets the rate */
	bool			app_limited;
	bool			advanced;
	bool			linux_reduces;
};

/* What a socket has: the rest lives longer than a change of its control. */
struct external_ca {
	struct external *state;
};

static u32 flows;

static struct external *external_of(const struct sock *sk)
{
	return ((struct external_ca *)inet_csk_ca(sk))->state;
}

/* Programs pay for a look at the clock, in simulated time. */
static u64 external_now(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = ktime_get_ns();
	local_irq_restore(flags);
	return now;
}

static void external_fill(struct external *x)
{
	struct external_record *record = &x->record;
	struct sock *sk = x->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct inet_sock *inet = inet_sk(sk);
	u32 min_rtt_us = tcp_min_rtt(tp);

	*record = (struct external_record) {
		.magic = EXTERNAL_MAGIC,
		.version = EXTERNAL_VERSION,
		.bytes = sizeof(*record),
		.flow = x->flow,
		.events = x->pending,
		.time_ns = external_now(),
		.rtt_ns = (u64)x->rtt_us * NSEC_PER_USEC,
		.min_rtt_ns = min_rtt_us == ~0U ? 0 : (u64)min_rtt_us * NSEC_PER_USEC,
		.srtt_ns = (u64)tp->srtt_us * NSEC_PER_USEC >> 3,
		.delivered_packets = tp->delivered,
		.delivery_rate = x->delivery_rate,
		.lost_packets = tp->lost,
		.marked_packets = tp->delivered_ce,
		.pacing_rate = sk->sk_pacing_rate,
		.in_flight_packets = tcp_packets_in_flight(tp),
		.cwnd_packets = tcp_snd_cwnd(tp),
		.ssthresh_packets = tp->snd_ssthresh,
		.mss_bytes = tp->mss_cache,
		.recovery_state = inet_csk(sk)->icsk_ca_state,
		.flags = (x->app_limited ? EXTERNAL_APP_LIMITED : 0) |
			 (tcp_is_cwnd_limited(sk) ? EXTERNAL_CWND_LIMITED : 0) |
			 (x->advanced ? EXTERNAL_ADVANCED : 0),
		.acked_packets = x->acked,
		.merged_events = x->merged,
		.source_port = ntohs(inet->inet_sport),
		.destination_port = ntohs(inet->inet_dport),
		.prior_cwnd_packets = tp->prior_cwnd,
	};
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		memcpy(record->source, &inet6_sk(sk)->saddr, 16);
		memcpy(record->destination, &sk->sk_v6_daddr, 16);
		return;
	}
#endif
	memset(record->source + 10, 0xff, 2);
	memcpy(record->source + 12, &inet->inet_saddr, 4);
	memset(record->destination + 10, 0xff, 2);
	memcpy(record->destination + 12, &inet->inet_daddr, 4);
}

static int external_write(const struct external *x)
{
	int done;

	do {
		done = os_write_file(EXTERNAL_SOCKET, &x->record, sizeof(x->record));
	} while (done == -EINTR);
	return done;
}

/* Waits in the host. */
static void external_read(struct external *x)
{
	struct external_answer *answer = &x->answer;
	/* One more byte, for a message that is too long. */
	u8 message[sizeof(*answer) + 1];
	int done;

	do {
		done = os_read_file(EXTERNAL_SOCKET, message, sizeof(message));
	} while (done == -EINTR);
	if (done == -EAGAIN)
		panic("tcp_external: it has not answered in time");
	if (done == 0 || done == -ECONNRESET)
		panic("tcp_external: it closed its socket");
	if (done < 0)
		panic("tcp_external: no answer can be read: error %d", -done);
	memcpy(answer, message, sizeof(*answer));
	if (done != sizeof(*answer))
		panic("tcp_external: an answer has %s%d bytes: write %zu",
		      done > sizeof(*answer) ? "more than " : "",
		      done > sizeof(*answer) ? done - 1 : done, sizeof(*answer));
	if (answer->magic != EXTERNAL_MAGIC ||
	    answer->version != EXTERNAL_VERSION ||
	    answer->bytes != sizeof(*answer))
		panic("tcp_external: an answer begins otherwise than one of version %d",
		      EXTERNAL_VERSION);
	if (answer->flow != x->flow)
		panic("tcp_external: an answer is for flow %u: the record was of flow %u",
		      answer->flow, x->flow);
	if (answer->cwnd_packets > EXTERNAL_CWND_MAX)
		panic("tcp_external: an answer has cwnd_packets %u: write at most %u",
		      answer->cwnd_packets, EXTERNAL_CWND_MAX);
	if (answer->ssthresh_packets > EXTERNAL_CWND_MAX)
		panic("tcp_external: an answer has ssthresh_packets %u: write at most %u",
		      answer->ssthresh_packets, EXTERNAL_CWND_MAX);
	if (answer->ask & ~EXTERNAL_CHOICE)
		panic("tcp_external: an answer has ask %u: add up %u for ACK, %u for INTERVAL, %u for LOSS, %u for TIMEOUT and %u for ECN",
		      answer->ask, EXTERNAL_ACK, EXTERNAL_INTERVAL,
		      EXTERNAL_LOSS, EXTERNAL_TIMEOUT, EXTERNAL_ECN);
	if (answer->reduction > EXTERNAL_BY_LINUX)
		panic("tcp_external: an answer has reduction %u: write %u for the program's, or %u for Linux's",
		      answer->reduction, EXTERNAL_BY_PROGRAM, EXTERNAL_BY_LINUX);
	if (answer->interval_ns > KTIME_MAX / 2 ||
	    (answer->interval_ns && answer->interval_ns < EXTERNAL_SHORTEST_NS))
		panic("tcp_external: an answer has interval_ns %llu: write at least %u",
		      answer->interval_ns, EXTERNAL_SHORTEST_NS);
	if ((answer->ask & EXTERNAL_INTERVAL) && !answer->interval_ns && !x->interval_ns)
		panic("tcp_external: an answer asks for INTERVAL: write its interval_ns");
}

/* A timer holds its socket. */
static void external_start(struct external *x, struct hrtimer *timer, u64 delay_ns)
{
	if (hrtimer_try_to_cancel(timer) != 1)
		sock_hold(x->sk);
	hrtimer_start(timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL_PINNED_SOFT);
}

static void external_stop(struct external *x, struct hrtimer *timer)
{
	if (hrtimer_try_to_cancel(timer) == 1)
		__sock_put(x->sk);
}

/* What tcp_update_pacing_rate does for controls without cong_control: it
 * decides on the size of bursts.
 */
static void external_linux_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct netns_ipv4 *ipv4 = &sock_net(sk)->ipv4;
	u64 rate = (u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);

	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)
		rate *= READ_ONCE(ipv4->sysctl_tcp_pacing_ss_ratio);
	else
		rate *= READ_ONCE(ipv4->sysctl_tcp_pacing_ca_ratio);
	rate *= max(tcp_snd_cwnd(tp), tp->packets_out);
	if (tp->srtt_us)
		rate = div_u64(rate, tp->srtt_us);
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void external_apply(struct external *x)
{
	const struct external_answer *answer = &x->answer;
	struct sock *sk = x->sk;
	struct tcp_sock *tp = tcp_sk(sk);

	if (answer->cwnd_packets)
		tcp_snd_cwnd_set(tp, min(answer->cwnd_packets, tp->snd_cwnd_clamp));
	if (answer->ssthresh_packets)
		tp->snd_ssthresh = answer->ssthresh_packets;
	if (answer->pacing_rate) {
		x->paced = true;
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
		WRITE_ONCE(sk->sk_pacing_rate,
			   min_t(u64, answer->pacing_rate,
				 READ_ONCE(sk->sk_max_pacing_rate)));
	}
	if (answer->reduction)
		x->linux_reduces = answer->reduction == EXTERNAL_BY_LINUX;
	if (answer->ask)
		x->ask = answer->ask;
	if (!(x->ask & EXTERNAL_INTERVAL)) {
		external_stop(x, &x->interval);
		x->interval_ns = 0;
	} else if (answer->interval_ns && answer->interval_ns != x->interval_ns) {
		x->interval_ns = answer->interval_ns;
		external_start(x, &x->interval, x->interval_ns);
	}
}

/* Asks the program where it wants to be asked about what is pending. */
static void external_ask(struct external *x)
{
	int done;

	if (x->thinking || !(x->pending & (x->ask | EXTERNAL_START)))
		return;
	x->pending = x->merged = x->acked = x->rtt_us = 0;
	x->delivery_rate = 0;
	x->advanced = false;
	done = external_write(x);
	if (done == -EPIPE || done == -ECONNRESET)
		panic("tcp_external: it closed its socket");
	if (done == -EAGAIN)
		panic("tcp_external: it has not answered in time");
	if (done != sizeof(x->record))
		panic("tcp_external: no record can be written: error %d", -done);
	external_read(x);
	if (thinks_ns) {
		x->thinking = true;
		external_start(x, &x->thought, thinks_ns);
	} else {
		external_apply(x);
	}
}

static void external_event(struct external *x, u32 event)
{
	x->pending |= event;
	x->merged++;
	external_fill(x);
	external_ask(x);
}

/* After an answer that comes without an ACK: the window may have opened. This
 * is what a socket does when its owner releases it.
 */
static void external_send(struct sock *sk)
{
	if (!test_and_set_bit(TCP_TSQ_DEFERRED, &sk->sk_tsq_flags))
		sock_hold(sk);
	sk->sk_prot->release_cb(sk);
}

static enum hrtimer_restart external_expired(struct external *x, struct hrtimer *timer)
{
	struct sock *sk = x->sk;
	enum hrtimer_restart again = HRTIMER_NORESTART;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		hrtimer_forward_now(timer, EXTERNAL_LOCKED_NS);
		again = HRTIMER_RESTART;
	} else if (external_of(sk) == x) {
		if (timer == &x->interval) {
			external_event(x, EXTERNAL_INTERVAL);
			/* Unless the answer has stopped or started it. */
			if (x->interval_ns && !hrtimer_is_queued(timer)) {
				hrtimer_forward_now(timer, x->interval_ns);
				again = HRTIMER_RESTART;
			}
		} else {
			x->thinking = false;
			external_apply(x);
			external_fill(x);
			external_ask(x);
		}
		external_send(sk);
	}
	bh_unlock_sock(sk);
	if (again == HRTIMER_NORESTART)
		sock_put(sk);
	return again;
}

static enum hrtimer_restart external_interval(struct hrtimer *timer)
{
	return external_expired(container_of(timer, struct external, interval), timer);
}

static enum hrtimer_restart external_thought(struct hrtimer *timer)
{
	return external_expired(container_of(timer, struct external, thought), timer);
}

static void external_prepare(struct hrtimer *timer,
			     enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	timer->function = function;
#endif
}

/* A flow begins with the first packet of data: who only receives has none. */
static void external_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct external_ca *ca = inet_csk_ca(sk);
	struct external *x;

	if (event != CA_EVENT_TX_START || ca->state)
		return;
	x = kzalloc(sizeof(*x), GFP_ATOMIC);
	if (!x)
		panic("tcp_external: there is no memory for a flow");
	ca->state = x;
	x->sk = sk;
	x->flow = flows++;
	x->ask = EXTERNAL_ACK | EXTERNAL_LOSS | EXTERNAL_TIMEOUT | EXTERNAL_ECN;
	external_prepare(&x->interval, external_interval);
	external_prepare(&x->thought, external_thought);
	x->rtt_us = tcp_sk(sk)->srtt_us >> 3;
	external_event(x, EXTERNAL_START);
}

static void external_release(struct sock *sk)
{
	struct external_ca *ca = inet_csk_ca(sk);
	struct external *x = ca->state;

	if (!x)
		return;
	/* Numbers of a connection that is cut off are gone by now. */
	x->record.events = x->pending | EXTERNAL_END;
	x->record.merged_events = x->merged + 1;
	x->record.acked_packets = x->acked;
	x->record.time_ns = external_now();
	/* There is no answer, and a program may have ended before. */
	external_write(x);
	external_stop(x, &x->interval);
	external_stop(x, &x->thought);
	ca->state = NULL;
	kfree(x);
}

/* tcp_cwnd_reduction, which no control may call. */
static void external_reduce(struct sock *sk, const struct rate_sample *rs, int flag)
{
	struct tcp_sock *tp = tcp_sk(sk);
	int delta = tp->snd_ssthresh - tcp_packets_in_flight(tp);
	int packets;

	if (!rs->acked_sacked || !tp->prior_cwnd)
		return;
	tp->prr_delivered += rs->acked_sacked;
	if (delta < 0) {
		u64 dividend = (u64)tp->snd_ssthresh * tp->prr_delivered + tp->prior_cwnd - 1;

		packets = div_u64(dividend, tp->prior_cwnd) - tp->prr_out;
	} else {
		packets = max_t(int, tp->prr_delivered - tp->prr_out, rs->acked_sacked);
		if (flag & EXTERNAL_SND_UNA_ADVANCED && !rs->losses)
			packets++;
		packets = min(delta, packets);
	}
	packets = max(packets, tp->prr_out ? 0 : 1);
	tcp_snd_cwnd_set(tp, min_t(u64, (u64)tcp_packets_in_flight(tp) + packets, EXTERNAL_CWND_MAX));
}

static bool external_reduces(const struct sock *sk)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

static void external_cong_control(struct sock *sk, u32 ack, int flag,
				  const struct rate_sample *rs)
{
	struct external *x = external_of(sk);

	if (x) {
		if (rs->rtt_us > 0)
			x->rtt_us = rs->rtt_us;
		if (rs->delivered > 0 && rs->interval_us > 0)
			x->delivery_rate = div64_u64((u64)rs->delivered * tcp_sk(sk)->mss_cache *
						     USEC_PER_SEC, rs->interval_us);
		x->acked += rs->acked_sacked;
		x->app_limited = rs->is_app_limited;
		x->advanced |= flag & EXTERNAL_DATA_ACKED;
		external_event(x, EXTERNAL_ACK);
		if (x->linux_reduces && external_reduces(sk))
			external_reduce(sk, rs, flag);
	}
	if (!x || !x->paced)
		external_linux_rate(sk);
}

static void external_set_state(struct sock *sk, u8 state)
{
	struct external *x = external_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!x)
		return;
	/* As tcp_end_cwnd_reduction does, unless the loss was none. */
	if (x->linux_reduces && external_reduces(sk) && state < TCP_CA_CWR &&
	    tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (tp->undo_marker || inet_csk(sk)->icsk_ca_state == TCP_CA_CWR))
		tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
	/* The ACK that tells of a loss or a mark comes to cong_control next. */
	if (state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery)
		x->pending |= EXTERNAL_LOSS;
	if (state == TCP_CA_CWR && inet_csk(sk)->icsk_ca_state != TCP_CA_CWR)
		x->pending |= EXTERNAL_ECN;
	if (state == TCP_CA_Loss)
		external_event(x, EXTERNAL_TIMEOUT);
}

static u32 external_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 external_undo_cwnd(struct sock *sk)
{
	const struct external *x = external_of(sk);

	return x && x->linux_reduces ? tcp_reno_undo_cwnd(sk) : tcp_snd_cwnd(tcp_sk(sk));
}

static struct tcp_congestion_ops external __read_mostly = {
	.cwnd_event	= external_cwnd_event,
	.release	= external_release,
	.cong_control	= external_cong_control,
	.set_state	= external_set_state,
	.ssthresh	= external_ssthresh,
	.undo_cwnd	= external_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "external",
};

static int __init external_register(void)
{
	BUILD_BUG_ON(sizeof(struct external_ca) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&external);
}

static void __exit external_unregister(void)
{
	tcp_unregister_congestion_control(&external);
}

module_init(external_register);
module_exit(external_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP whose window a program outside sets");
