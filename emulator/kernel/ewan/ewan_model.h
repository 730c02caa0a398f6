/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The link's model, one direction of a link ("lane"): what src/lib.rs offers. Times are ns of CLOCK_MONOTONIC.
 * Soft interrupts are off in each call that takes a lane, but for ewan_lane_new, ewan_lane_begin, ewan_lane_free and
 * ewan_change_new; the rules are at the top of src/lib.rs.
 */
#ifndef _EWAN_MODEL_H
#define _EWAN_MODEL_H

#include <linux/types.h>
#include <linux/pkt_sch_ewan.h>

struct ewan_lane;
struct ewan_change;
struct ewan_report;
struct ewan_flow;

/* What the model is told of a frame, and what stage 1 decides. */
struct ewan_arrival {
	u32	ip_bytes;	/* what it counts before the framing's overhead */
	u16	flow;
	u8	traffic_class;
	bool	lost;
	bool	duplicate;
	bool	corrupt;
	bool	bleach;		/* clear the bits of ECN */
	u32	random;		/* chooses the bit to turn over */
	u64	ack_flow;	/* of a pure ACK; or 0 */
	u32	ack_number;
	u16	ack_marks;
	u16	place;		/* of its flow among those that are counted */
	u16	payload_bytes;
};

struct ewan_release {
	void	*packet;
	void	*ahead[2];	/* the packets that come next, or NULL */
	bool	mark_ce;
};

struct ewan_lane *ewan_lane_new(const u8 *text, size_t length, char *reason, size_t room);
void ewan_lane_begin(struct ewan_lane *lane, u64 now);
void ewan_lane_free(struct ewan_lane *lane);
struct ewan_change *ewan_change_new(const struct ewan_lane *lane, const u8 *text, size_t length, char *reason,
				    size_t room);
void ewan_change_free(struct ewan_change *change);
void ewan_lane_take_over(struct ewan_lane *lane, struct ewan_change *change, u64 now);
bool ewan_lane_share(struct ewan_lane *lane, struct ewan_lane *other, u64 now);
void ewan_lane_impair(struct ewan_lane *lane, const u8 *head, size_t head_bytes, u32 bytes, u32 tag_bytes, u64 now,
		      struct ewan_arrival *arrival);
bool ewan_lane_enqueue(struct ewan_lane *lane, void *packet, const struct ewan_arrival *arrival, u64 now);
void ewan_lane_pop(struct ewan_lane *lane, u64 now, struct ewan_release *release);
void *ewan_lane_cut(struct ewan_lane *lane);
void *ewan_lane_dropped(struct ewan_lane *lane);
u64 ewan_lane_next(const struct ewan_lane *lane);
struct ewan_report *ewan_lane_report_new(void);
void ewan_lane_report_fill(struct ewan_report *report, const struct ewan_lane *lane);
size_t ewan_lane_report_write(struct ewan_report *report, u8 *text, size_t room);
size_t ewan_lane_flow_count(const struct ewan_lane *lane);
struct ewan_flow *ewan_flow_new(void);
bool ewan_flow_fill(struct ewan_flow *flow, const struct ewan_lane *lane, size_t place);
const u8 *ewan_flow_report(struct ewan_flow *flow, u64 now, size_t *length);
void ewan_flow_free(struct ewan_flow *flow);
void ewan_frame_mark_ce(u8 *head, size_t head_bytes);
void ewan_frame_bleach(u8 *head, size_t head_bytes);
void ewan_frame_flip_bit(u8 *frame, size_t bytes, u32 random);

#endif
