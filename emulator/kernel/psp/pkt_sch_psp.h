/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * psp: precise software pacing. What a program and the kernel say to each
 * other: attributes nested in TCA_OPTIONS, statistics in TCA_STATS_APP.
 */
#ifndef _UAPI_LINUX_PKT_SCH_PSP_H
#define _UAPI_LINUX_PKT_SCH_PSP_H

#include <linux/types.h>

enum {
	TCA_PSP_UNSPEC,
	TCA_PSP_MODE,		/* u8, qdisc: enum psp_mode; stays as created */
	TCA_PSP_DEFAULT,	/* u32, qdisc: minor of the class for the rest */
	TCA_PSP_LINE_RATE64,	/* u64, qdisc: bit/s of the port (gap mode) */
	TCA_PSP_RATE64,		/* u64, class: bit/s; 0: not paced */
	TCA_PSP_OVERHEAD,	/* s32, class: bytes added to skb->len */
	TCA_PSP_MPU,		/* u32, class: least bytes a packet counts */
	TCA_PSP_DEPARTURE,	/* u8, class: enum psp_departure (timer mode) */
	TCA_PSP_DITHER64,	/* u64, class: ns */
	TCA_PSP_SEED64,		/* u64, class: of the dither */
	TCA_PSP_PAD,
	__TCA_PSP_MAX,
};

#define TCA_PSP_MAX (__TCA_PSP_MAX - 1)

enum psp_mode {
	PSP_MODE_TIMER,		/* a timer releases each packet */
	PSP_MODE_GAP,		/* PAUSE frames fill the line in between */
};

enum psp_departure {
	PSP_DEPARTURE_START,	/* a packet leaves when its first bit is sent */
	PSP_DEPARTURE_END,	/* ... when its last bit has been sent */
};

/* Of a class; the qdisc shows the sum of its classes. */
struct tc_psp_xstats {
	__u64	packets;	/* sent */
	__u64	bytes;		/* sent, counted with overhead and mpu */
	__u64	dropped;	/* refused by the class or by its child */
	__u64	segmented;	/* GSO packets that were cut into segments */
	__u64	late;		/* releases after their instant (timer mode) */
	__u64	late_ns;	/* sum of their lateness */
	__u64	late_max_ns;	/* largest lateness */
	__u64	dither_ns;	/* sum of the dither that packets were given */
	__u64	gaps;		/* intervals filled before packets of the class */
	__u64	pause_frames;	/* PAUSE frames sent to fill them */
	__u64	gap_bytes;	/* bytes of these on the wire, with framing */
	__u64	waited_ns;	/* packets in the child, integrated over time */
};

#endif
