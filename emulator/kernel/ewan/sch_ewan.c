// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sch_ewan.c	One direction of an emulated link: loss, corruption and
 *		duplication, a queue, an exact rate, a delay line.
 *
 * The model itself is in Rust (emulator/model) and is the same that serves
 * live links. Here it meets the kernel: packets come in with the time of
 * now, one timer waits for the model's next event, memory is the kernel's.
 */

#include <linux/errno.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/gso.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "ewan_model.h"

#ifdef CONFIG_SMP
#error "one processor has both directions of a link: no lock keeps others away"
#endif

#define EWAN_REASON	120
#define EWAN_REPORT	4096	/* names and numbers of 64 bits: 22 of the link, 6 of each of 8 classes */

struct ewan_sched {
	struct ewan_lane	*lane;
	struct Qdisc		*other;		/* the link's other direction */
	struct qdisc_watchdog	watchdog;
	u8			*text;		/* of a direction or a change, as far as it came */
	size_t			length;
	char			reason[EWAN_REASON];
	u8			report[EWAN_REPORT];
};

/* Called by the model. Only a link that is made or changed needs large pieces, and there the kernel may sleep. */

void *ewan_alloc(size_t size, size_t align);
void *ewan_alloc(size_t size, size_t align)
{
	if (!in_softirq())
		return kvmalloc(max(size, align), GFP_KERNEL);
	/*
	 * What kmalloc gives is aligned to its size where that is a power of two. Where it gives nothing the packet that
	 * needed the memory is dropped, and counted.
	 */
	return size <= KMALLOC_MAX_SIZE ? kmalloc(max(size, align), GFP_ATOMIC | __GFP_NOWARN) : NULL;
}

void ewan_free(void *memory);
void ewan_free(void *memory)
{
	kvfree(memory);
}

void __noreturn ewan_panic(const char *text, size_t length);
void __noreturn ewan_panic(const char *text, size_t length)
{
	panic("ewan: %.*s", (int)length, text);
}

/* Parts of Rust's library mention these; nothing unwinds here. */
void rust_eh_personality(void);
void rust_eh_personality(void)
{
	panic("ewan: unwinding");
}

void ewan_unwind(void *exception);
void ewan_unwind(void *exception)
{
	panic("ewan: unwinding");
}

static void ewan_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	qdisc_qstats_drop(sch);
	if (to_free)
		__qdisc_drop(skb, to_free);
	else
		kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
}

/* What the queue's discipline dropped after it had been accepted. */
static void ewan_free_dropped(struct ewan_sched *q, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct sk_buff *skb;

	while ((skb = ewan_lane_dropped(q->lane))) {
		sch->q.qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		ewan_drop(skb, sch, to_free);
	}
}

/* 0: what of the frame is in one piece may be written to, and belongs to no other packet. */
static int ewan_head_writable(struct sk_buff *skb)
{
	return skb_ensure_writable(skb, min_t(unsigned int, skb->len, skb_headlen(skb)));
}

/*
 * Where both directions share a medium, one's turn depends on the other: both are brought to the time of now, before and
 * after a packet comes or goes, and the other one waits for its own next event. One processor has both.
 */
static void ewan_share(struct ewan_sched *q, u64 now)
{
	struct ewan_sched *other;
	u64 next;

	if (!q->other)
		return;
	other = qdisc_priv(q->other);
	if (!ewan_lane_share(q->lane, other->lane, now))
		return;
	next = ewan_lane_next(other->lane);
	if (next != U64_MAX)
		qdisc_watchdog_schedule_ns(&other->watchdog, next);
}

static bool ewan_accept(struct ewan_sched *q, struct Qdisc *sch, struct sk_buff *skb,
			const struct ewan_arrival *arrival, u64 now, struct sk_buff **to_free)
{
	if (!ewan_lane_enqueue(q->lane, skb, arrival, now)) {
		if (skb)
			ewan_drop(skb, sch, to_free);
		return false;
	}
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return true;
}

static int ewan_take(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_arrival arrival;
	struct sk_buff *copy = NULL;
	u64 now = ktime_get_ns();
	bool accepted;

	ewan_share(q, now);
	ewan_lane_impair(q->lane, skb->data, skb_headlen(skb), skb->len, skb_vlan_tag_present(skb) ? VLAN_HLEN : 0, now,
			 &arrival);
	if (arrival.lost) {
		ewan_drop(skb, sch, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	}
	if (arrival.bleach) {
		if (ewan_head_writable(skb))
			return qdisc_drop(skb, sch, to_free);
		ewan_frame_bleach(skb->data, skb_headlen(skb));
	}
	/* A turned bit shall be seen: the checksum is of what was sent. */
	if (arrival.corrupt && skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))
		return qdisc_drop(skb, sch, to_free);
	if (arrival.duplicate)
		copy = skb_copy(skb, GFP_ATOMIC);
	if (arrival.corrupt) {
		skb = skb_unshare(skb, GFP_ATOMIC);
		if (!skb || skb_linearize(skb)) {
			qdisc_qstats_drop(sch);
			kfree_skb(skb);
			kfree_skb(copy);
			return NET_XMIT_DROP;
		}
		ewan_frame_flip_bit(skb->data, skb->len, arrival.random);
	}
	accepted = ewan_accept(q, sch, skb, &arrival, now, to_free);
	if (arrival.duplicate)
		ewan_accept(q, sch, copy, &arrival, now, to_free);
	ewan_share(q, now);
	ewan_free_dropped(q, sch, to_free);
	return accepted ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

/* What a sender left to its hardware to cut comes to the link as the packets that hardware would send. */
static int ewan_segment(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct sk_buff *segment, *next;
	bool accepted = false;

	segment = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segment))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segment, segment, next) {
		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = segment->len;
		accepted |= ewan_take(segment, sch, to_free) != NET_XMIT_DROP;
	}
	consume_skb(skb);
	return accepted ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static int ewan_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct ewan_sched *q = qdisc_priv(sch);

	if (unlikely(!q->lane))
		return qdisc_drop(skb, sch, to_free);
	return unlikely(skb_is_gso(skb)) ? ewan_segment(skb, sch, to_free) : ewan_take(skb, sch, to_free);
}

static struct sk_buff *ewan_dequeue(struct Qdisc *sch)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_release release;
	struct sk_buff *skb;
	u64 now = ktime_get_ns();
	u64 next;

	if (unlikely(!q->lane))
		return NULL;
	ewan_share(q, now);
	ewan_lane_pop(q->lane, now, &release);
	ewan_free_dropped(q, sch, NULL);
	skb = release.packet;
	if (!skb) {
		next = ewan_lane_next(q->lane);
		if (next != U64_MAX)
			qdisc_watchdog_schedule_ns(&q->watchdog, next);
		return NULL;
	}
	/* It was fetched two packets ago. */
	if (release.ahead[0])
		skb_prefetch_head(release.ahead[0]);
	if (release.ahead[1])
		skb_prefetch(release.ahead[1]);
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	if (release.mark_ce && !ewan_head_writable(skb))
		ewan_frame_mark_ce(skb->data, skb_headlen(skb));
	return skb;
}

static const struct nla_policy ewan_policy[TCA_EWAN_MAX + 1] = {
	[TCA_EWAN_TEXT]		= { .type = NLA_BINARY },
	[TCA_EWAN_DIRECTION]	= { .type = NLA_FLAG },
	[TCA_EWAN_CHANGE]	= { .type = NLA_FLAG },
	[TCA_EWAN_OTHER]	= { .type = NLA_U32 },
};

static int ewan_refuse(struct netlink_ext_ack *extack, const char *reason)
{
	NL_SET_ERR_MSG_FMT_MOD(extack, "%s", reason);
	return -EINVAL;
}

static int ewan_append(struct ewan_sched *q, const struct nlattr *part)
{
	u8 *text = kvmalloc(q->length + nla_len(part), GFP_KERNEL);

	if (!text)
		return -ENOMEM;
	if (q->length)
		memcpy(text, q->text, q->length);
	memcpy(text + q->length, nla_data(part), nla_len(part));
	kvfree(q->text);
	q->text = text;
	q->length += nla_len(part);
	return 0;
}

/* The direction that is made last finds the other one. */
static void ewan_join(struct Qdisc *sch, int index)
{
	struct net_device *dev = __dev_get_by_index(dev_net(qdisc_dev(sch)), index);
	struct Qdisc *other = dev ? rtnl_dereference(dev->qdisc) : NULL;
	struct ewan_sched *q = qdisc_priv(sch), *theirs;

	if (!other || other->ops != sch->ops || other == sch)
		return;
	theirs = qdisc_priv(other);
	if (!theirs->lane || theirs->other)
		return;
	theirs->other = sch;
	q->other = other;
}

static int ewan_make(struct Qdisc *sch, const struct nlattr *other, struct netlink_ext_ack *extack)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_lane *lane;

	if (q->lane)
		return ewan_refuse(extack, "a link that is there takes a change");
	lane = ewan_lane_new(q->text, q->length, q->reason, sizeof(q->reason));
	if (!lane)
		return ewan_refuse(extack, q->reason);
	ewan_lane_begin(lane, ktime_get_ns());
	sch_tree_lock(sch);
	q->lane = lane;
	if (other)
		ewan_join(sch, nla_get_u32(other));
	sch_tree_unlock(sch);
	return 0;
}

static int ewan_alter(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_change *change;

	if (!q->lane)
		return ewan_refuse(extack, "a link that is not there takes a direction");
	change = ewan_change_new(q->lane, q->text, q->length, q->reason, sizeof(q->reason));
	if (!change)
		return ewan_refuse(extack, q->reason);
	sch_tree_lock(sch);
	ewan_share(q, ktime_get_ns());
	ewan_lane_take_over(q->lane, change, ktime_get_ns());
	ewan_share(q, ktime_get_ns());
	ewan_free_dropped(q, sch, NULL);
	sch_tree_unlock(sch);
	ewan_change_free(change);
	/* What is due next may be due at another time now. */
	netif_schedule_queue(sch->dev_queue);
	return 0;
}

static int ewan_options(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_EWAN_MAX + 1];
	int error;

	error = options ? nla_parse_nested(tb, TCA_EWAN_MAX, options, ewan_policy, extack) : -EINVAL;
	if (!error && tb[TCA_EWAN_TEXT])
		error = ewan_append(q, tb[TCA_EWAN_TEXT]);
	if (error || (!tb[TCA_EWAN_DIRECTION] && !tb[TCA_EWAN_CHANGE]))
		return error;
	if (!q->length)
		return ewan_refuse(extack, "a direction or a change comes with its text");
	error = tb[TCA_EWAN_DIRECTION] ? ewan_make(sch, tb[TCA_EWAN_OTHER], extack) : ewan_alter(sch, extack);
	kvfree(q->text);
	q->text = NULL;
	q->length = 0;
	return error;
}

static int ewan_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct ewan_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	return ewan_options(sch, options, extack);
}

/* The device went down: what is in the link is gone, the link is as it was. */
static void ewan_reset(struct Qdisc *sch)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	qdisc_watchdog_cancel(&q->watchdog);
	/* A discipline may be ended outside of its lock; the other direction's packets are not to come in between. */
	local_bh_disable();
	while (q->lane && (skb = ewan_lane_cut(q->lane)))
		rtnl_kfree_skbs(skb, skb);
	if (q->lane)
		ewan_share(q, ktime_get_ns());
	local_bh_enable();
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

static void ewan_destroy(struct Qdisc *sch)
{
	struct ewan_sched *q = qdisc_priv(sch), *other;

	ewan_reset(sch);
	if (q->other) {
		other = qdisc_priv(q->other);
		other->other = NULL;
	}
	if (q->lane)
		ewan_lane_free(q->lane);
	kvfree(q->text);
}

static int ewan_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static int ewan_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_report *report;

	if (!q->lane)
		return 0;
	/* The counters are copied while no packet comes or goes; what writes them as text takes memory, and may sleep. */
	report = ewan_lane_report_new();
	local_bh_disable();
	ewan_lane_report_fill(report, q->lane);
	local_bh_enable();
	return gnet_stats_copy_app(d, q->report, ewan_lane_report_write(report, q->report, sizeof(q->report)));
}

/* Flows that are counted apart are classes that one can look at; no packet is sorted by them. */

static struct Qdisc *ewan_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long ewan_find(struct Qdisc *sch, u32 class)
{
	return 0;
}

static void ewan_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct ewan_sched *q = qdisc_priv(sch);
	size_t place, count;

	if (walker->stop || !q->lane)
		return;
	local_bh_disable();
	count = ewan_lane_flow_count(q->lane);
	local_bh_enable();
	for (place = 0; place < count; place++)
		if (!tc_qdisc_stats_dump(sch, place + 1, walker))
			return;
}

static int ewan_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(class);
	return 0;
}

static int ewan_dump_class_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *d)
{
	struct ewan_sched *q = qdisc_priv(sch);
	struct ewan_flow *flow;
	const u8 *report;
	size_t length;
	bool counted;
	int error = 0;

	flow = ewan_flow_new();
	local_bh_disable();
	counted = ewan_flow_fill(flow, q->lane, class - 1);
	local_bh_enable();
	if (counted) {
		report = ewan_flow_report(flow, ktime_get_ns(), &length);
		error = gnet_stats_copy_app(d, (void *)report, length);
	}
	ewan_flow_free(flow);
	return error;
}

static const struct Qdisc_class_ops ewan_class_ops = {
	.leaf		= ewan_leaf,
	.find		= ewan_find,
	.walk		= ewan_walk,
	.dump		= ewan_dump_class,
	.dump_stats	= ewan_dump_class_stats,
};

static struct Qdisc_ops ewan_ops __read_mostly = {
	.cl_ops		= &ewan_class_ops,
	.id		= "ewan",
	.priv_size	= sizeof(struct ewan_sched),
	.enqueue	= ewan_enqueue,
	.dequeue	= ewan_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= ewan_init,
	.change		= ewan_options,
	.reset		= ewan_reset,
	.destroy	= ewan_destroy,
	.dump		= ewan_dump,
	.dump_stats	= ewan_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init ewan_register(void)
{
	return register_qdisc(&ewan_ops);
}
device_initcall(ewan_register);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An emulated link");
