/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a congestion control takes from <linux/module.h> and what that includes, for a BPF program. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define U32_MAX ((u32)~0U)
#define USEC_PER_MSEC 1000
#define USEC_PER_SEC 1000000
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
/* Within the kernel's structures, which the running one may have arranged otherwise. */
#define READ_BIT(structure, field) BPF_CORE_READ_BITFIELD(structure, field)
/* The socket is locked. */
#define cmpxchg(pointer, old, new) ({ if (*(pointer) == (old)) *(pointer) = (new); })
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(wrong) _Static_assert(!(wrong), #wrong)
#define memset __builtin_memset

#define min(a, b) ({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ typeof(a) _x = (a); typeof(b) _y = (b); _x > _y ? _x : _y; })
#define max3(a, b, c) max(max(a, b), c)
#define min3(a, b, c) min(min(a, b), c)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(x, low, high) ({ typeof(x) _v = (x); _v < (low) ? (low) : _v > (high) ? (high) : _v; })
#define clamp_t(type, x, low, high) clamp((type)(x), (type)(low), (type)(high))

/* BPF has no instruction that finds the highest bit. */
static inline int fls(u32 x)
{
	int bits = 0;

	for (int step = 16; step; step /= 2) {
		if (x >> step) {
			bits += step;
			x >>= step;
		}
	}
	return bits + (x ? 1 : 0);
}

/* A program is registered by its loader, not by itself. */
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define __read_mostly
#define THIS_MODULE NULL
#define module_init(function)
#define module_exit(function)
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_ALIAS(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text) char _license[] SEC("license") = text
