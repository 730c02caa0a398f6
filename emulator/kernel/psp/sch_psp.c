// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sch_psp.c	Precise software pacing: each class sends at its rate, its
 *		packets evenly spaced.
 *
 * After R. Takano et al., "Design and evaluation of precise software pacing
 * mechanisms for fast long-distance networks", PFLDnet 2005. A class has a
 * clock that says where its next packet may begin: each packet moves it by
 * length / rate. There are two ways to wait for it:
 *
 *  timer  The clock counts ns. A timer releases the packet. For devices
 *	   without a line rate of their own (veth) and for virtual time.
 *  gap	   The clock counts bytes on the line, as in the paper. While no class
 *	   may send, IEEE 802.3x PAUSE frames of pause time 0, which the far end
 *	   discards, occupy the line for exactly as long as the packet has to
 *	   wait. The port itself is then the timer, exact to a byte. A gap
 *	   below the smallest frame is filled by the smallest frame; the class
 *	   clock does not follow, so such errors do not add up.
 *
 * Differences from the paper: timer mode; departure at the end of a packet;
 * dither; a class without a rate sends whenever no paced class is due.
 *
 * Rounding: clocks are exact. One packet takes n * unit / rate, unit being
 * 8e9 (timer) or the line rate in bit/s (gap), n the bytes it counts. What
 * remains of the division is carried to the next packet, in 1/rate, so that
 * the long-run rate is exact. A release is rounded up to whole ns (or bytes):
 * it is never early, and late by less than one. A late timer does not move
 * the clock. A new rate holds from the next packet on; the one in service
 * ends at the rate that it began with.
 *
 * All times are CLOCK_MONOTONIC.
 */

#include <linux/errno.h>
#include <linux/if_arp.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prefetch.h>
#include <linux/rbtree.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#if __has_include(<net/gso.h>)		/* since 6.5 */
#include <net/gso.h>
#endif
#if __has_include(<linux/pkt_sch_psp.h>)
#include <linux/pkt_sch_psp.h>
#else
#include "pkt_sch_psp.h"
#endif

#define PSP_RATE_MAX	1000000000000ULL	/* bit/s: no product below overflows */
#define PSP_LEN_MAX	(1 << 20)
#define PSP_FRAMING	24	/* FCS 4, preamble 8, least gap 12 bytes */
#define PSP_WIRE_MIN	(ETH_ZLEN + PSP_FRAMING)
#define PSP_DITHER_MAX	(10ULL * NSEC_PER_SEC)
#define PSP_DITHER_QLEN	(1 << 20)
#define PSP_PAUSE_MTU	9216
#define PSP_PAUSE_OPCODE 0x0001

struct psp_class {
	struct Qdisc_class_common common;
	struct Qdisc		*qdisc;

	struct rb_node		ready;		/* in psp_sched.ready, by key */
	u64			key;		/* clock, rounded up */
	u64			clock;		/* where the next packet may begin */
	u64			frac;		/* and its fraction, in 1/rate */
	u64			arrival;	/* ns, of what last found the child empty */
	u64			noted;		/* ns, until which waiting is counted */
	struct sk_buff		*held;		/* in service, leaves at key */

	u64			rate;
	s32			overhead;
	u32			mpu;
	u8			departure;
	u32			memo_len;	/* the last length, and its time */
	u64			memo_whole;
	u64			memo_part;

	u64			dither;
	u64			seed;
	u64			random;		/* state of the generator */
	u64			dither_last;
	struct qdisc_skb_head	dithered;	/* on its way to the child */
	struct rb_node		waiting;	/* in psp_sched.waiting, by head */
	u64			waiting_key;

	struct list_head	stalled;	/* its child holds packets back */
	unsigned int		filters;
	struct gnet_stats_basic_sync bstats;
	struct gnet_stats_queue	qstats;
	struct net_rate_estimator __rcu *rate_est;
	struct tc_psp_xstats	xstats;
};

struct psp_sched {
	struct rb_root_cached	ready;		/* classes with packets to send */
	struct rb_root_cached	waiting;	/* classes with packets in dither */
	struct list_head	stalled;
	struct qdisc_skb_head	direct;		/* of no class */
	struct psp_class	*deflt;
	u32			defcls;
	u8			mode;
	bool			in_gap;
	u64			unit;		/* clock units per byte at 1 bit/s */
	u64			line_rate;
	u64			byte_clock;	/* gap mode: given to the port so far */
	u64			anchor_ns;	/* gap mode: a time and the byte */
	u64			anchor_bytes;	/* clock of the line at that time */
	struct sk_buff		*pause;
	struct qdisc_watchdog	watchdog;
	struct Qdisc_class_hash	clhash;
	struct tcf_proto __rcu	*filter_list;
	struct tcf_block	*block;
};

struct psp_skb_cb {
	u64 release;		/* ns: not before this, 0 without dither */
};

static struct psp_skb_cb *psp_skb_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct psp_skb_cb));
	return (struct psp_skb_cb *)qdisc_skb_cb(skb)->data;
}

static struct psp_class *psp_find(struct Qdisc *sch, u32 classid)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct Qdisc_class_common *common;

	common = qdisc_class_find(&q->clhash, classid);
	return common ? container_of(common, struct psp_class, common) : NULL;
}

/* ---- clocks ---- */

static u32 psp_len(const struct psp_class *cl, const struct sk_buff *skb)
{
	s64 len = (s64)skb->len + cl->overhead;

	return clamp_t(s64, len, cl->mpu, PSP_LEN_MAX);
}

static u32 psp_wire_len(const struct sk_buff *skb)
{
	return max_t(u32, qdisc_pkt_len(skb), ETH_ZLEN) + PSP_FRAMING;
}

/* Packets of one length follow each other, so most need no division. */
static void psp_advance(const struct psp_sched *q, struct psp_class *cl, u32 len)
{
	if (!cl->rate)
		return;
	if (len != cl->memo_len) {
		cl->memo_whole = div64_u64_rem(len * q->unit, cl->rate,
					       &cl->memo_part);
		cl->memo_len = len;
	}
	cl->clock += cl->memo_whole;
	cl->frac += cl->memo_part;
	if (cl->frac >= cl->rate) {
		cl->frac -= cl->rate;
		cl->clock++;
	}
}

static void psp_not_before(struct psp_class *cl, u64 clock)
{
	if (cl->clock < clock) {
		cl->clock = clock;
		cl->frac = 0;
	}
}

/* True where a packet in service is held until its last bit has been sent. */
static bool psp_holds(const struct psp_sched *q, const struct psp_class *cl)
{
	return q->mode == PSP_MODE_TIMER && cl->rate &&
	       cl->departure == PSP_DEPARTURE_END;
}

/*
 * A plain FIFO keeps what is noted in a packet, so dither can be waited for
 * together with the packet before: one timer for both instead of one each.
 */
static bool psp_dithers_late(const struct psp_sched *q,
			     const struct psp_class *cl)
{
	return psp_holds(q, cl) && (cl->qdisc->ops == &pfifo_qdisc_ops ||
				    cl->qdisc->ops == &bfifo_qdisc_ops);
}

/* ---- the order of classes ---- */

#define psp_ready(node)		rb_entry(node, struct psp_class, ready)
#define psp_waiting(node)	rb_entry(node, struct psp_class, waiting)

static bool psp_ready_less(struct rb_node *a, const struct rb_node *b)
{
	return psp_ready(a)->key < psp_ready(b)->key;
}

static bool psp_waiting_less(struct rb_node *a, const struct rb_node *b)
{
	return psp_waiting(a)->waiting_key < psp_waiting(b)->waiting_key;
}

/* Put a class where its clock, which never goes back, says. */
static void psp_place(struct psp_sched *q, struct psp_class *cl)
{
	struct rb_node *next;

	cl->key = cl->clock + (cl->frac != 0);
	if (!RB_EMPTY_NODE(&cl->ready)) {
		next = rb_next(&cl->ready);
		if (!next || psp_ready(next)->key > cl->key)
			return;
		rb_erase_cached(&cl->ready, &q->ready);
	}
	rb_add_cached(&cl->ready, &q->ready, psp_ready_less);
}

static void psp_unready(struct psp_sched *q, struct psp_class *cl)
{
	if (!RB_EMPTY_NODE(&cl->ready)) {
		rb_erase_cached(&cl->ready, &q->ready);
		RB_CLEAR_NODE(&cl->ready);
	}
}

/* The child gave nothing: it is empty, or (itself a shaper) it waits. */
static void psp_rest(struct psp_sched *q, struct psp_class *cl)
{
	psp_unready(q, cl);
	if (qdisc_qlen_sum(cl->qdisc))
		list_move_tail(&cl->stalled, &q->stalled);
}

/*
 * Line bytes that passed since the anchor were silence where they exceed what
 * the port was given; a gap need not fill them again.
 */
static void psp_gap_resume(struct psp_sched *q, u64 now)
{
	u64 bytes;

	if (now <= q->anchor_ns)
		return;
	bytes = mul_u64_u64_div_u64(now - q->anchor_ns, q->line_rate,
				    8 * NSEC_PER_SEC);
	if (q->anchor_bytes + bytes >= q->byte_clock) {
		q->byte_clock = q->anchor_bytes + bytes;
		q->anchor_bytes = q->byte_clock;
		q->anchor_ns = now;
	}
}

/* ---- from the child to the line ---- */

/*
 * Packets come cold out of a long queue. Fetch the structure of the third that
 * waits, and what the second one, fetched at the last turn, points to. Other
 * kinds of children than one plain list have no head here.
 */
static void psp_prefetch(const struct Qdisc *child)
{
	const struct sk_buff *second, *third;

	if (!child->q.head || !child->q.head->next)
		return;
	second = child->q.head->next;
	prefetch(second->data);
	prefetch(skb_end_pointer(second));
	third = second->next;
	if (third) {
		prefetch(third);
		prefetch((const char *)third + 64);
		prefetch((const char *)third + 128);
		prefetch((const char *)third + 192);
	}
}

/*
 * Before anything enters or leaves the child: as many packets as are in it have
 * waited since the last time. The packet in service is not among them. A child
 * that drops what it holds does so in these calls only. @now in ns, 0 if not
 * read yet: nothing waits in an empty child, so for one the clock is not read.
 */
static void psp_note(struct psp_class *cl, u64 now)
{
	unsigned int waiting = qdisc_qlen_sum(cl->qdisc);

	if (!waiting)
		return;
	if (!now)
		now = ktime_get_ns();
	if (now > cl->noted) {
		cl->xstats.waited_ns += (now - cl->noted) * waiting;
		cl->noted = now;
	}
}

static struct sk_buff *psp_take(struct psp_class *cl, u64 now)
{
	psp_note(cl, now);
	return cl->qdisc->dequeue(cl->qdisc);
}

/* Begin the next packet of a class whose last one has gone; @now as above. */
static void psp_next(struct psp_sched *q, struct psp_class *cl, u64 now)
{
	if (!qdisc_qlen_sum(cl->qdisc)) {
		psp_unready(q, cl);
		return;
	}
	if (q->mode == PSP_MODE_TIMER)
		psp_not_before(cl, cl->arrival);
	if (psp_holds(q, cl)) {
		struct sk_buff *skb = psp_take(cl, now);

		if (!skb) {
			psp_rest(q, cl);
			return;
		}
		cl->held = skb;
		psp_prefetch(cl->qdisc);
		if (psp_dithers_late(q, cl))
			psp_not_before(cl, psp_skb_cb(skb)->release);
		psp_advance(q, cl, psp_len(cl, skb));
	}
	psp_place(q, cl);
}

/* A packet came to a child that was empty; @now in ns, 0 if not read yet. */
static void psp_wake(struct psp_sched *q, struct psp_class *cl, u64 now)
{
	bool idle = RB_EMPTY_NODE(&cl->ready) && list_empty(&cl->stalled);

	if (!now)
		now = ktime_get_ns();
	cl->noted = now;
	if (q->mode == PSP_MODE_TIMER) {
		cl->arrival = now;
	} else if (idle) {
		if (RB_EMPTY_ROOT(&q->ready.rb_root))
			psp_gap_resume(q, now);
		psp_not_before(cl, q->byte_clock);
	}
	if (idle)
		psp_next(q, cl, now);
}

static int psp_admit(struct psp_sched *q, struct psp_class *cl,
		     struct sk_buff *skb, struct Qdisc *sch, bool counted,
		     u64 now, struct sk_buff **to_free)
{
	bool empty = !qdisc_qlen_sum(cl->qdisc);
	unsigned int len = qdisc_pkt_len(skb);
	int err;

	psp_note(cl, now);
	err = qdisc_enqueue(skb, cl->qdisc, to_free);
	if (unlikely(err != NET_XMIT_SUCCESS)) {
		if (net_xmit_drop_count(err)) {
			cl->qstats.drops++;
			cl->xstats.dropped++;
			qdisc_qstats_drop(sch);
		}
		return err;
	}
	if (!counted) {
		sch->qstats.backlog += len;
		sch->q.qlen++;
	}
	if (empty)
		psp_wake(q, cl, now);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *psp_sent(struct Qdisc *sch, struct psp_class *cl,
				struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	bstats_update(&cl->bstats, skb);
	cl->xstats.packets++;
	cl->xstats.bytes += psp_len(cl, skb);
	return skb;
}

/* ---- dither ---- */

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64 uniform bits. */
static u64 psp_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void psp_waiting_add(struct psp_sched *q, struct psp_class *cl)
{
	cl->waiting_key = psp_skb_cb(cl->dithered.head)->release;
	rb_add_cached(&cl->waiting, &q->waiting, psp_waiting_less);
}

static int psp_dither(struct psp_sched *q, struct psp_class *cl,
		      struct sk_buff *skb, struct Qdisc *sch,
		      struct sk_buff **to_free)
{
	u64 now = ktime_get_ns();
	u64 release = now;

	if (cl->dithered.qlen >= PSP_DITHER_QLEN) {
		cl->qstats.drops++;
		cl->xstats.dropped++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (cl->dither)
		release += mul_u64_u64_shr(psp_random(&cl->random),
					   cl->dither, 64);
	release = max(release, cl->dither_last);	/* order is kept */
	cl->dither_last = release;
	cl->xstats.dither_ns += release - now;
	psp_skb_cb(skb)->release = release;
	if (psp_dithers_late(q, cl) && !cl->dithered.head)
		return psp_admit(q, cl, skb, sch, false, now, to_free);
	sch->qstats.backlog += qdisc_pkt_len(skb);
	sch->q.qlen++;
	__qdisc_enqueue_tail(skb, &cl->dithered);
	if (cl->dithered.qlen == 1)
		psp_waiting_add(q, cl);
	return NET_XMIT_SUCCESS;
}

/* Packets whose dither has passed reach the child of their class. */
static void psp_dither_run(struct Qdisc *sch, struct psp_sched *q, u64 now)
{
	struct sk_buff *to_free = NULL;
	struct rb_node *node;

	while ((node = rb_first_cached(&q->waiting)) &&
	       psp_waiting(node)->waiting_key <= now) {
		struct psp_class *cl = psp_waiting(node);
		struct sk_buff *skb = __qdisc_dequeue_head(&cl->dithered);
		unsigned int len = qdisc_pkt_len(skb);
		u64 arrival = cl->waiting_key;

		rb_erase_cached(&cl->waiting, &q->waiting);
		if (cl->dithered.head)
			psp_waiting_add(q, cl);
		if (psp_admit(q, cl, skb, sch, true, arrival, &to_free) !=
		    NET_XMIT_SUCCESS) {
			sch->qstats.backlog -= len;
			sch->q.qlen--;
			qdisc_tree_reduce_backlog(sch, 1, len);
		}
	}
	kfree_skb_list(to_free);
}

/* ---- enqueue ---- */

static struct psp_class *psp_classify(struct sk_buff *skb, struct Qdisc *sch,
				      struct psp_sched *q, int *err)
{
	struct tcf_result res;
	struct psp_class *cl;
	struct tcf_proto *fl;
	int verdict;

	*err = 0;
	if (unlikely(TC_H_MAJ(skb->priority ^ sch->handle) == 0)) {
		cl = psp_find(sch, skb->priority);
		if (cl)
			return cl;
	}
	fl = rcu_dereference_bh(q->filter_list);
	if (likely(!fl))
		return q->deflt;
	verdict = tcf_classify(skb, NULL, fl, &res, false);
	if (verdict < 0)
		return q->deflt;
	switch (verdict) {
	case TC_ACT_QUEUED:
	case TC_ACT_STOLEN:
	case TC_ACT_TRAP:
		*err = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		return NULL;
	case TC_ACT_SHOT:
	case TC_ACT_REDIRECT:
		*err = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
		return NULL;
	}
	cl = (struct psp_class *)res.class;
	if (!cl)
		cl = psp_find(sch, res.classid);
	return cl ? cl : q->deflt;
}

static int psp_enqueue_class(struct psp_sched *q, struct psp_class *cl,
			     struct sk_buff *skb, struct Qdisc *sch,
			     struct sk_buff **to_free)
{
	if (cl->dither || cl->dithered.head)
		return psp_dither(q, cl, skb, sch, to_free);
	if (psp_dithers_late(q, cl))
		psp_skb_cb(skb)->release = 0;
	return psp_admit(q, cl, skb, sch, false, 0, to_free);
}

/* Segments are paced one by one; the parents counted one packet. */
static int psp_enqueue_gso(struct psp_sched *q, struct psp_class *cl,
			   struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	unsigned int whole = qdisc_pkt_len(skb), len = 0, seg_len;
	struct sk_buff *segs, *seg, *next;
	int queued = 0;

	segs = skb_gso_segment(skb, features);
	if (IS_ERR_OR_NULL(segs)) {
		cl->qstats.drops++;
		cl->xstats.dropped++;
		return qdisc_drop(skb, sch, to_free);
	}
	skb_list_walk_safe(segs, seg, next) {
		skb_mark_not_on_list(seg);
		seg_len = seg->len;
		qdisc_skb_cb(seg)->pkt_len = seg_len;
		if (psp_enqueue_class(q, cl, seg, sch, to_free) ==
		    NET_XMIT_SUCCESS) {
			queued++;
			len += seg_len;
		}
	}
	cl->xstats.segmented++;
	if (!queued) {
		__qdisc_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	qdisc_tree_reduce_backlog(sch, 1 - queued, whole - len);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int psp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct psp_class *cl;
	int err;

	cl = psp_classify(skb, sch, q, &err);
	if (likely(cl)) {
		if (skb_is_gso(skb))
			return psp_enqueue_gso(q, cl, skb, sch, to_free);
		return psp_enqueue_class(q, cl, skb, sch, to_free);
	}
	if (unlikely(err)) {
		if (err & __NET_XMIT_BYPASS)
			qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return err;
	}
	if (q->direct.qlen >= max(qdisc_dev(sch)->tx_queue_len, 1U))
		return qdisc_drop(skb, sch, to_free);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	__qdisc_enqueue_tail(skb, &q->direct);
	return NET_XMIT_SUCCESS;
}

/* ---- dequeue ---- */

static struct psp_class *psp_first(struct psp_sched *q)
{
	struct rb_node *node = rb_first_cached(&q->ready);

	return node ? psp_ready(node) : NULL;
}

static void psp_arm(struct psp_sched *q)
{
	struct rb_node *waiting = rb_first_cached(&q->waiting);
	struct psp_class *cl = psp_first(q);
	u64 when = U64_MAX;

	if (cl && q->mode == PSP_MODE_TIMER)
		when = cl->key;
	if (waiting)
		when = min(when, psp_waiting(waiting)->waiting_key);
	if (when != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, when);
}

/* Ask the shapers below once more; this call may be due to their timers. */
static void psp_retry(struct psp_sched *q, u64 now)
{
	struct psp_class *cl, *next;
	LIST_HEAD(stalled);

	list_splice_init(&q->stalled, &stalled);
	list_for_each_entry_safe(cl, next, &stalled, stalled) {
		list_del_init(&cl->stalled);
		if (q->mode == PSP_MODE_TIMER)
			cl->arrival = now;
		else
			psp_not_before(cl, q->byte_clock);
		psp_next(q, cl, now);
	}
}

static struct sk_buff *psp_dequeue_timer(struct Qdisc *sch, struct psp_sched *q,
					 u64 now)
{
	struct psp_class *cl;
	struct sk_buff *skb;
	u64 late;

	while ((cl = psp_first(q)) && cl->key <= now) {
		late = now - cl->key;
		skb = cl->held;
		cl->held = NULL;
		if (!skb) {
			skb = psp_take(cl, now);
			if (!skb) {
				psp_rest(q, cl);
				continue;
			}
			psp_advance(q, cl, psp_len(cl, skb));
		}
		psp_next(q, cl, now);
		if (late) {
			cl->xstats.late++;
			cl->xstats.late_ns += late;
			cl->xstats.late_max_ns = max(cl->xstats.late_max_ns,
						     late);
		}
		return psp_sent(sch, cl, skb);
	}
	return NULL;
}

/* A PAUSE frame that occupies the line for @gap bytes, or a part of them. */
static struct sk_buff *psp_pause(struct Qdisc *sch, struct psp_sched *q,
				 struct psp_class *cl, u64 gap)
{
	u32 most = min(q->pause->len, qdisc_dev(sch)->mtu + ETH_HLEN) +
		   PSP_FRAMING;
	struct sk_buff *skb;
	u32 wire;

	if (gap >= most + PSP_WIRE_MIN)
		wire = most;
	else if (gap > most)	/* leave enough for one more */
		wire = gap - PSP_WIRE_MIN;
	else
		wire = gap;
	wire = max_t(u32, wire, PSP_WIRE_MIN);

	skb = skb_clone(q->pause, GFP_ATOMIC);
	if (unlikely(!skb)) {
		qdisc_watchdog_schedule_ns(&q->watchdog,
					   ktime_get_ns() + NSEC_PER_MSEC);
		return NULL;
	}
	skb_trim(skb, wire - PSP_FRAMING);
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	q->byte_clock += wire;
	cl->xstats.gaps += !q->in_gap;
	cl->xstats.pause_frames++;
	cl->xstats.gap_bytes += wire;
	q->in_gap = true;
	/* Parents subtract what they are given; they did not see it come. */
	qdisc_tree_reduce_backlog(sch, -1, -(int)skb->len);
	return skb;
}

static struct sk_buff *psp_dequeue_gap(struct Qdisc *sch, struct psp_sched *q)
{
	struct psp_class *cl;
	struct sk_buff *skb;
	u64 owed;

	while ((cl = psp_first(q))) {
		if (cl->key > q->byte_clock)
			return psp_pause(sch, q, cl, cl->key - q->byte_clock);
		skb = psp_take(cl, 0);
		if (!skb) {
			psp_rest(q, cl);
			continue;
		}
		q->in_gap = false;
		q->byte_clock += psp_wire_len(skb);
		psp_advance(q, cl, psp_len(cl, skb));
		/*
		 * A class that waited for others catches up, by no more than
		 * a packet of each of them; one without a rate never does.
		 */
		owed = cl->rate ? (u64)(q->clhash.hashelems + 1) *
				  (q->pause->len + PSP_FRAMING) : 0;
		if (q->byte_clock > owed)
			psp_not_before(cl, q->byte_clock - owed);
		psp_next(q, cl, 0);
		return psp_sent(sch, cl, skb);
	}
	return NULL;
}

static struct sk_buff *psp_dequeue(struct Qdisc *sch)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now = 0;

	if (unlikely(q->direct.head)) {
		skb = __qdisc_dequeue_head(&q->direct);
		q->byte_clock += psp_wire_len(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (!sch->q.qlen)
		return NULL;
	if (q->mode == PSP_MODE_TIMER || !RB_EMPTY_ROOT(&q->waiting.rb_root)) {
		now = ktime_get_ns();
		psp_dither_run(sch, q, now);
	}
	if (unlikely(!list_empty(&q->stalled)))
		psp_retry(q, now);
	skb = q->mode == PSP_MODE_TIMER ? psp_dequeue_timer(sch, q, now) :
					  psp_dequeue_gap(sch, q);
	if (!skb)
		psp_arm(q);
	return skb;
}

/* ---- configuration ---- */

static struct netlink_range_validation psp_u16 = { .max = 0xffff };

static const struct nla_policy psp_policy[TCA_PSP_MAX + 1] = {
	[TCA_PSP_MODE]		= NLA_POLICY_MAX(NLA_U8, PSP_MODE_GAP),
	[TCA_PSP_DEFAULT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &psp_u16),
	[TCA_PSP_LINE_RATE64]	= { .type = NLA_U64 },
	[TCA_PSP_RATE64]	= { .type = NLA_U64 },
	[TCA_PSP_OVERHEAD]	= NLA_POLICY_RANGE(NLA_S32, -4096, 4096),
	[TCA_PSP_MPU]		= NLA_POLICY_FULL_RANGE(NLA_U32, &psp_u16),
	[TCA_PSP_DEPARTURE]	= NLA_POLICY_MAX(NLA_U8, PSP_DEPARTURE_END),
	[TCA_PSP_DITHER64]	= { .type = NLA_U64 },
	[TCA_PSP_SEED64]	= { .type = NLA_U64 },
	[TCA_PSP_PAD]		= { .type = NLA_BINARY },
};

/* Refuses unknown attributes, wrong lengths, and those of the other kind. */
static int psp_parse(struct nlattr **tb, struct nlattr *opt, bool of_class,
		     struct netlink_ext_ack *extack)
{
	int err, i;

	memset(tb, 0, sizeof(*tb) * (TCA_PSP_MAX + 1));
	if (!opt)
		return 0;
	err = nla_parse(tb, TCA_PSP_MAX, nla_data(opt), nla_len(opt),
			psp_policy, extack);
	if (err)
		return err;
	for (i = TCA_PSP_MODE; i < TCA_PSP_PAD; i++) {
		if (!tb[i] || (i >= TCA_PSP_RATE64) == of_class)
			continue;
		if (of_class)
			NL_SET_ERR_MSG_ATTR(extack, tb[i],
					    "psp: mode, default and line rate belong to the qdisc, not to a class");
		else
			NL_SET_ERR_MSG_ATTR(extack, tb[i],
					    "psp: rate, overhead, mpu, departure, dither and seed belong to a class, not to the qdisc");
		return -EINVAL;
	}
	return 0;
}

static u64 psp_port_rate(struct net_device *dev)
{
	struct ethtool_link_ksettings link;

	if (__ethtool_get_link_ksettings(dev, &link) ||
	    link.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return (u64)link.base.speed * 1000000;
}

static int psp_make_pause(struct Qdisc *sch, struct psp_sched *q)
{
	struct net_device *dev = qdisc_dev(sch);
	u32 len = clamp_t(u32, dev->mtu, ETH_ZLEN, PSP_PAUSE_MTU) + ETH_HLEN;
	struct ethhdr *eth;
	__be16 *mac;

	q->pause = alloc_skb(LL_RESERVED_SPACE(dev) + len, GFP_KERNEL);
	if (!q->pause)
		return -ENOMEM;
	skb_reserve(q->pause, LL_RESERVED_SPACE(dev));
	eth = skb_put_zero(q->pause, len);
	ether_addr_copy(eth->h_dest, (const u8[ETH_ALEN]){
			0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 });
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(ETH_P_PAUSE);
	mac = (__be16 *)(eth + 1);
	mac[0] = htons(PSP_PAUSE_OPCODE);
	mac[1] = 0;		/* pause time: none */
	q->pause->dev = dev;
	q->pause->protocol = eth->h_proto;
	q->pause->priority = TC_PRIO_CONTROL;
	skb_reset_mac_header(q->pause);
	skb_set_network_header(q->pause, ETH_HLEN);
	return 0;
}

static int psp_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_PSP_MAX + 1];
	u64 line_rate = q->line_rate;
	struct psp_class *cl;
	unsigned int i;
	int err;

	err = psp_parse(tb, opt, false, extack);
	if (err)
		return err;
	if (tb[TCA_PSP_MODE] && nla_get_u8(tb[TCA_PSP_MODE]) != q->mode) {
		NL_SET_ERR_MSG(extack, "psp: the mode stays as created; delete the qdisc and add it anew");
		return -EOPNOTSUPP;
	}
	if (tb[TCA_PSP_LINE_RATE64])
		line_rate = nla_get_u64(tb[TCA_PSP_LINE_RATE64]);
	else if (!line_rate && q->mode == PSP_MODE_GAP)
		line_rate = psp_port_rate(qdisc_dev(sch));
	if (q->mode == PSP_MODE_GAP && !line_rate) {
		NL_SET_ERR_MSG(extack, "psp: gap mode needs the line rate, and the port does not tell its speed");
		return -EINVAL;
	}
	if (line_rate > PSP_RATE_MAX) {
		NL_SET_ERR_MSG(extack, "psp: the line rate is above 1 Tbit/s");
		return -ERANGE;
	}
	for (i = 0; i < q->clhash.hashsize && q->mode == PSP_MODE_GAP; i++) {
		hlist_for_each_entry(cl, &q->clhash.hash[i], common.hnode) {
			if (cl->rate > line_rate) {
				NL_SET_ERR_MSG(extack, "psp: a class has a rate above this line rate");
				return -ERANGE;
			}
		}
	}

	sch_tree_lock(sch);
	if (q->mode == PSP_MODE_GAP && line_rate != q->line_rate) {
		q->anchor_ns = ktime_get_ns();
		q->anchor_bytes = q->byte_clock;
		q->unit = line_rate;
		for (i = 0; i < q->clhash.hashsize; i++)
			hlist_for_each_entry(cl, &q->clhash.hash[i],
					     common.hnode)
				cl->memo_len = U32_MAX;
	}
	q->line_rate = line_rate;
	if (tb[TCA_PSP_DEFAULT])
		q->defcls = nla_get_u32(tb[TCA_PSP_DEFAULT]);
	q->deflt = psp_find(sch, TC_H_MAKE(sch->handle, q->defcls));
	sch_tree_unlock(sch);
	return 0;
}

static int psp_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_PSP_MAX + 1];
	int err;

	qdisc_watchdog_init(&q->watchdog, sch);
	q->ready = RB_ROOT_CACHED;
	q->waiting = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&q->stalled);
	q->unit = 8 * NSEC_PER_SEC;

	err = psp_parse(tb, opt, false, extack);
	if (err)
		return err;
	if (tb[TCA_PSP_MODE])
		q->mode = nla_get_u8(tb[TCA_PSP_MODE]);
	if (q->mode == PSP_MODE_GAP) {
		if (qdisc_dev(sch)->type != ARPHRD_ETHER) {
			NL_SET_ERR_MSG(extack, "psp: gap mode needs an Ethernet device, for its PAUSE frames");
			return -EOPNOTSUPP;
		}
		err = psp_make_pause(sch, q);
		if (err)
			return err;
	}
	err = qdisc_class_hash_init(&q->clhash);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;
	return psp_change(sch, opt, extack);
}

static int psp_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u8(skb, TCA_PSP_MODE, q->mode) ||
	    nla_put_u32(skb, TCA_PSP_DEFAULT, q->defcls) ||
	    nla_put_u64_64bit(skb, TCA_PSP_LINE_RATE64, q->line_rate,
			      TCA_PSP_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int psp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct tc_psp_xstats sum = {};
	struct psp_class *cl;
	unsigned int i;

	sch_tree_lock(sch);
	for (i = 0; i < q->clhash.hashsize; i++) {
		hlist_for_each_entry(cl, &q->clhash.hash[i], common.hnode) {
			const struct tc_psp_xstats *x = &cl->xstats;

			psp_note(cl, 0);
			sum.packets += x->packets;
			sum.bytes += x->bytes;
			sum.dropped += x->dropped;
			sum.segmented += x->segmented;
			sum.late += x->late;
			sum.late_ns += x->late_ns;
			sum.late_max_ns = max(sum.late_max_ns, x->late_max_ns);
			sum.dither_ns += x->dither_ns;
			sum.gaps += x->gaps;
			sum.pause_frames += x->pause_frames;
			sum.gap_bytes += x->gap_bytes;
			sum.waited_ns += x->waited_ns;
		}
	}
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &sum, sizeof(sum));
}

/* Packets that wait for the dither, and the one in service: gone. */
static void psp_drop_own(struct psp_sched *q, struct psp_class *cl,
			 u32 *qlen, u32 *backlog)
{
	struct sk_buff *skb;

	if (cl->dithered.head)
		rb_erase_cached(&cl->waiting, &q->waiting);
	while ((skb = __qdisc_dequeue_head(&cl->dithered))) {
		*qlen += 1;
		*backlog += qdisc_pkt_len(skb);
		rtnl_kfree_skbs(skb, skb);
	}
	if (cl->held) {
		*qlen += 1;
		*backlog += qdisc_pkt_len(cl->held);
		rtnl_kfree_skbs(cl->held, cl->held);
		cl->held = NULL;
	}
	psp_unready(q, cl);
	list_del_init(&cl->stalled);
}

static void psp_reset(struct Qdisc *sch)
{
	struct psp_sched *q = qdisc_priv(sch);
	u32 qlen = 0, backlog = 0;
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->clhash.hashsize; i++) {
		hlist_for_each_entry(cl, &q->clhash.hash[i], common.hnode) {
			psp_drop_own(q, cl, &qlen, &backlog);
			qdisc_reset(cl->qdisc);
			cl->clock = q->mode == PSP_MODE_GAP ? q->byte_clock : 0;
			cl->frac = 0;
			cl->dither_last = 0;
		}
	}
	__qdisc_reset_queue(&q->direct);
	qdisc_watchdog_cancel(&q->watchdog);
}

/* ---- classes ---- */

static int psp_class_config(struct Qdisc *sch, struct psp_class *cl,
			    struct nlattr **tb, bool fresh,
			    struct netlink_ext_ack *extack)
{
	struct psp_sched *q = qdisc_priv(sch);
	u64 rate = tb[TCA_PSP_RATE64] ? nla_get_u64(tb[TCA_PSP_RATE64]) :
					cl->rate;
	u64 dither = tb[TCA_PSP_DITHER64] ? nla_get_u64(tb[TCA_PSP_DITHER64]) :
					    cl->dither;

	if (rate > PSP_RATE_MAX) {
		NL_SET_ERR_MSG(extack, "psp: the rate is above 1 Tbit/s");
		return -ERANGE;
	}
	if (q->mode == PSP_MODE_GAP && rate > q->line_rate) {
		NL_SET_ERR_MSG(extack, "psp: the rate is above the line rate");
		return -ERANGE;
	}
	if (dither > PSP_DITHER_MAX) {
		NL_SET_ERR_MSG(extack, "psp: the dither is above 10 s");
		return -ERANGE;
	}

	sch_tree_lock(sch);
	if (rate != cl->rate && cl->rate) {
		/* The packet in service, if any, ends as it began. */
		if (rate) {
			cl->frac = mul_u64_u64_div_u64(cl->frac, rate, cl->rate);
		} else if (!cl->held) {
			cl->clock = q->mode == PSP_MODE_GAP ? q->byte_clock : 0;
			cl->frac = 0;
		}
	}
	cl->rate = rate;
	cl->dither = dither;
	if (tb[TCA_PSP_OVERHEAD])
		cl->overhead = nla_get_s32(tb[TCA_PSP_OVERHEAD]);
	if (tb[TCA_PSP_MPU])
		cl->mpu = nla_get_u32(tb[TCA_PSP_MPU]);
	if (tb[TCA_PSP_DEPARTURE])
		cl->departure = nla_get_u8(tb[TCA_PSP_DEPARTURE]);
	if (tb[TCA_PSP_SEED64] || fresh) {
		cl->seed = tb[TCA_PSP_SEED64] ? nla_get_u64(tb[TCA_PSP_SEED64]) :
						cl->common.classid;
		cl->random = cl->seed;
	}
	cl->memo_len = U32_MAX;
	if (!RB_EMPTY_NODE(&cl->ready) && !cl->held) {
		psp_unready(q, cl);
		psp_next(q, cl, 0);
		psp_arm(q);
	}
	sch_tree_unlock(sch);
	return 0;
}

static void psp_class_free(struct psp_class *cl)
{
	gen_kill_estimator(&cl->rate_est);
	qdisc_put(cl->qdisc);
	kfree(cl);
}

static int psp_class_new(struct Qdisc *sch, u32 classid, u32 parentid,
			 struct nlattr **tca, struct nlattr **tb,
			 unsigned long *arg, struct netlink_ext_ack *extack)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct psp_class *cl;
	int err;

	if (parentid && parentid != TC_H_ROOT && parentid != sch->handle) {
		NL_SET_ERR_MSG(extack, "psp: classes have one level; the parent is the qdisc");
		return -EINVAL;
	}
	if (!TC_H_MIN(classid)) {
		NL_SET_ERR_MSG(extack, "psp: a class needs an id, as in classid 1:1");
		return -EINVAL;
	}
	cl = kzalloc(sizeof(*cl), GFP_KERNEL);
	if (!cl)
		return -ENOMEM;
	cl->common.classid = classid;
	RB_CLEAR_NODE(&cl->ready);
	INIT_LIST_HEAD(&cl->stalled);
	gnet_stats_basic_sync_init(&cl->bstats);
	err = psp_class_config(sch, cl, tb, true, extack);
	if (err)
		goto fail;
	if (tca[TCA_RATE]) {
		err = gen_replace_estimator(&cl->bstats, NULL, &cl->rate_est,
					    NULL, true, tca[TCA_RATE]);
		if (err) {
			NL_SET_ERR_MSG(extack, "psp: the rate estimator was refused");
			goto fail;
		}
	}
	cl->qdisc = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops, classid,
				      NULL);
	if (cl->qdisc)
		qdisc_hash_add(cl->qdisc, true);
	else
		cl->qdisc = &noop_qdisc;

	sch_tree_lock(sch);
	if (q->mode == PSP_MODE_GAP)
		cl->clock = q->byte_clock;
	qdisc_class_hash_insert(&q->clhash, &cl->common);
	if (TC_H_MIN(classid) == q->defcls)
		q->deflt = cl;
	sch_tree_unlock(sch);
	qdisc_class_hash_grow(sch, &q->clhash);
	*arg = (unsigned long)cl;
	return 0;
fail:
	kfree(cl);
	return err;
}

static int psp_change_class(struct Qdisc *sch, u32 classid, u32 parentid,
			    struct nlattr **tca, unsigned long *arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)*arg;
	struct nlattr *tb[TCA_PSP_MAX + 1];
	int err;

	err = psp_parse(tb, tca[TCA_OPTIONS], true, extack);
	if (err)
		return err;
	if (!cl)
		return psp_class_new(sch, classid, parentid, tca, tb, arg,
				     extack);
	if (tca[TCA_RATE]) {
		err = gen_replace_estimator(&cl->bstats, NULL, &cl->rate_est,
					    NULL, true, tca[TCA_RATE]);
		if (err) {
			NL_SET_ERR_MSG(extack, "psp: the rate estimator was refused");
			return err;
		}
	}
	return psp_class_config(sch, cl, tb, false, extack);
}

static int psp_delete_class(struct Qdisc *sch, unsigned long arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_sched *q = qdisc_priv(sch);
	u32 qlen = 0, backlog = 0;

	if (cl->filters) {
		NL_SET_ERR_MSG(extack, "psp: filters point to this class; delete them first");
		return -EBUSY;
	}
	sch_tree_lock(sch);
	psp_drop_own(q, cl, &qlen, &backlog);
	sch->q.qlen -= qlen;
	sch->qstats.backlog -= backlog;
	if (qlen)
		qdisc_tree_reduce_backlog(sch, qlen, backlog);
	qdisc_purge_queue(cl->qdisc);
	qdisc_class_hash_remove(&q->clhash, &cl->common);
	if (q->deflt == cl)
		q->deflt = NULL;
	sch_tree_unlock(sch);
	psp_class_free(cl);
	return 0;
}

static void psp_destroy(struct Qdisc *sch)
{
	struct psp_sched *q = qdisc_priv(sch);
	u32 qlen = 0, backlog = 0;
	struct hlist_node *next;
	struct psp_class *cl;
	unsigned int i;

	qdisc_watchdog_cancel(&q->watchdog);
	tcf_block_put(q->block);
	for (i = 0; i < q->clhash.hashsize; i++) {
		hlist_for_each_entry_safe(cl, next, &q->clhash.hash[i],
					  common.hnode) {
			psp_drop_own(q, cl, &qlen, &backlog);
			psp_class_free(cl);
		}
	}
	qdisc_class_hash_destroy(&q->clhash);
	kfree_skb(q->pause);
}

static unsigned long psp_search(struct Qdisc *sch, u32 classid)
{
	return (unsigned long)psp_find(sch, classid);
}

static int psp_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		     struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;

	if (!new)
		new = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
					cl->common.classid, NULL);
	if (!new)
		new = &noop_qdisc;
	*old = qdisc_replace(sch, new, &cl->qdisc);
	return 0;
}

static struct Qdisc *psp_leaf(struct Qdisc *sch, unsigned long arg)
{
	return ((struct psp_class *)arg)->qdisc;
}

static struct tcf_block *psp_tcf_block(struct Qdisc *sch, unsigned long arg,
				       struct netlink_ext_ack *extack)
{
	struct psp_sched *q = qdisc_priv(sch);

	if (arg) {
		NL_SET_ERR_MSG(extack, "psp: filters go to the qdisc, not to a class");
		return NULL;
	}
	return q->block;
}

static unsigned long psp_bind_tcf(struct Qdisc *sch, unsigned long parent,
				  u32 classid)
{
	struct psp_class *cl = psp_find(sch, classid);

	if (cl)
		cl->filters++;
	return (unsigned long)cl;
}

static void psp_unbind_tcf(struct Qdisc *sch, unsigned long arg)
{
	((struct psp_class *)arg)->filters--;
}

/* The child became empty by itself. May be called more than once. */
static void psp_qlen_notify(struct Qdisc *sch, unsigned long arg)
{
	struct psp_class *cl = (struct psp_class *)arg;

	if (!cl->held)
		psp_unready(qdisc_priv(sch), cl);
	list_del_init(&cl->stalled);
}

static int psp_dump_class(struct Qdisc *sch, unsigned long arg,
			  struct sk_buff *skb, struct tcmsg *tcm)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct nlattr *nest;

	tcm->tcm_parent = TC_H_ROOT;
	tcm->tcm_handle = cl->common.classid;
	tcm->tcm_info = cl->qdisc->handle;
	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_PSP_RATE64, cl->rate, TCA_PSP_PAD) ||
	    nla_put_s32(skb, TCA_PSP_OVERHEAD, cl->overhead) ||
	    nla_put_u32(skb, TCA_PSP_MPU, cl->mpu) ||
	    nla_put_u8(skb, TCA_PSP_DEPARTURE, cl->departure) ||
	    nla_put_u64_64bit(skb, TCA_PSP_DITHER64, cl->dither, TCA_PSP_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PSP_SEED64, cl->seed, TCA_PSP_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int psp_dump_class_stats(struct Qdisc *sch, unsigned long arg,
				struct gnet_dump *d)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct gnet_stats_queue qstats;
	struct tc_psp_xstats xstats;
	struct sk_buff *skb;
	u32 qlen, backlog;

	sch_tree_lock(sch);
	psp_note(cl, 0);
	xstats = cl->xstats;
	qstats = cl->qstats;
	qdisc_qstats_qlen_backlog(cl->qdisc, &qlen, &backlog);
	for (skb = cl->dithered.head; skb; skb = skb->next) {
		qlen++;
		backlog += qdisc_pkt_len(skb);
	}
	if (cl->held) {
		qlen++;
		backlog += qdisc_pkt_len(cl->held);
	}
	sch_tree_unlock(sch);
	qstats.backlog = backlog;
	if (gnet_stats_copy_basic(d, NULL, &cl->bstats, true) < 0 ||
	    gnet_stats_copy_rate_est(d, &cl->rate_est) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &qstats, qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &xstats, sizeof(xstats));
}

static void psp_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct psp_sched *q = qdisc_priv(sch);
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->clhash.hashsize && !walker->stop; i++) {
		hlist_for_each_entry(cl, &q->clhash.hash[i], common.hnode) {
			if (!tc_qdisc_stats_dump(sch, (unsigned long)cl,
						 walker))
				return;
		}
	}
}

static const struct Qdisc_class_ops psp_class_ops = {
	.change		= psp_change_class,
	.delete		= psp_delete_class,
	.find		= psp_search,
	.graft		= psp_graft,
	.leaf		= psp_leaf,
	.qlen_notify	= psp_qlen_notify,
	.tcf_block	= psp_tcf_block,
	.bind_tcf	= psp_bind_tcf,
	.unbind_tcf	= psp_unbind_tcf,
	.dump		= psp_dump_class,
	.dump_stats	= psp_dump_class_stats,
	.walk		= psp_walk,
};

static struct Qdisc_ops psp_qdisc_ops __read_mostly = {
	.id		= "psp",
	.cl_ops		= &psp_class_ops,
	.priv_size	= sizeof(struct psp_sched),
	.enqueue	= psp_enqueue,
	.dequeue	= psp_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= psp_init,
	.reset		= psp_reset,
	.destroy	= psp_destroy,
	.change		= psp_change,
	.dump		= psp_dump,
	.dump_stats	= psp_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init psp_module_init(void)
{
	return register_qdisc(&psp_qdisc_ops);
}

static void __exit psp_module_exit(void)
{
	unregister_qdisc(&psp_qdisc_ops);
}

module_init(psp_module_init);
module_exit(psp_module_exit);
#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("psp");
#endif
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Precise software pacing qdisc");
