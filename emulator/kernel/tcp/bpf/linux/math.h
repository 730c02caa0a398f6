/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The square root, for a BPF program: digit by digit, the largest number whose square is not above x. */
#pragma once

#include <linux/module.h>

static inline u32 int_sqrt64(u64 x)
{
	u64 root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		u64 larger = root | 1ULL << bit;

		if (larger * larger <= x)
			root = larger;
	}
	return root;
}
