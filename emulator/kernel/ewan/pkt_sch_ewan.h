/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * What user space tells the queueing discipline "ewan", and what it answers.
 */
#ifndef __LINUX_PKT_SCH_EWAN_H
#define __LINUX_PKT_SCH_EWAN_H

#include <linux/types.h>

enum {
	TCA_EWAN_UNSPEC,
	TCA_EWAN_TEXT,		/* JSON, or the next part of it: an attribute holds 64 KB at most */
	TCA_EWAN_DIRECTION,	/* the text is a direction of a link as the plan has it: make it */
	TCA_EWAN_CHANGE,	/* the text is what becomes different in the direction: change it */
	TCA_EWAN_OTHER,		/* u32: the interface of the link's other direction, beside DIRECTION */
	__TCA_EWAN_MAX,
};
#define TCA_EWAN_MAX (__TCA_EWAN_MAX - 1)

/*
 * TCA_STATS_APP: what the link counted, as JSON: DirectionReport of emulator/model/src/counters.rs. Where the direction
 * counts flows, each of them is a class, whose TCA_STATS_APP is FlowReport of emulator/model/src/flow_table.rs.
 */

#endif
