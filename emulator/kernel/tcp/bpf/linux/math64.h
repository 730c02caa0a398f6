/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Divisions, for a BPF program, whose instructions divide unsigned numbers. */
#pragma once

#include <linux/module.h>

static inline u64 div64_u64(u64 number, u64 by)
{
	return number / by;
}

static inline u64 div_u64(u64 number, u32 by)
{
	return number / by;
}

/* Towards 0, as the kernel's. */
static inline s64 div_s64(s64 number, s32 by)
{
	u64 whole = (number < 0 ? -(u64)number : (u64)number) / (u64)(by < 0 ? -(s64)by : by);

	return (number < 0) != (by < 0) ? -(s64)whole : (s64)whole;
}

static inline s64 div_s64_rem(s64 number, s32 by, s32 *rest)
{
	s64 whole = div_s64(number, by);

	*rest = number - whole * by;
	return whole;
}
