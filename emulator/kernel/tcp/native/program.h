/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a congestion control written as a BPF program finds in vmlinux.h and in
 * libbpf's headers, for its native compilation as a module of a kernel.
 *
 * The structures are those of the kernel's own headers. labs/congestion/native.py
 * writes a C file that includes this one before the program: the guards below
 * empty a copy of those headers that lies beside the program.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/hashtable.h>
#include <linux/inet_diag.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/win_minmax.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#define __VMLINUX_H__
#define __BPF_HELPERS__
#define __BPF_TRACING_H__
#define __BPF_CORE_READ_H__
#define __BPF_ENDIAN__
#define __BPF_TRACING_NET_H__
#define __BPF_TCP_HELPERS_H
#define __BPF_KFUNCS__
#define __BPF_MISC_H__

/* A module exports no function of the program; nothing outside it calls one by its name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-declarations"

/* bpf/bpf_helpers.h */
#define SEC(name)
#define __ksym
#define __kconfig
#define __kptr
#define __kptr_untrusted
#define __arg_ctx
#define __arg_nonnull
#define __hidden
#define barrier_var(variable)		asm volatile("" : "+r"(variable))
#define bpf_printk(format, ...)		printk(KERN_INFO format "\n", ##__VA_ARGS__)
#define bpf_ktime_get_ns()		ktime_get_ns()
#define bpf_ktime_get_boot_ns()		ktime_get_boottime_ns()
#define bpf_ktime_get_coarse_ns()	ktime_get_coarse_ns()
#define bpf_ktime_get_tai_ns()		ktime_get_clocktai_ns()
#define bpf_jiffies64()			get_jiffies_64()
#define bpf_get_prandom_u32()		get_random_u32()
#define bpf_get_smp_processor_id()	raw_smp_processor_id()
#define bpf_tcp_send_ack(tp, rcv_nxt)	({ __tcp_send_ack((struct sock *)(tp), rcv_nxt, 0); 0; })
#define bpf_for(i, from, to)		for ((i) = (from); (i) < (to); (i)++)
#define bpf_repeat(times)		for (int repeated_ = 0; repeated_ < (times); repeated_++)
#define can_loop			true
#define cond_break

/* The number of calls; the function ends the loop by a 1. */
static inline long bpf_loop(u32 times, void *function, void *context, u64 flags)
{
	long (*call)(u64 index, void *context) = function;
	u32 done = 0;

	while (done < times)
		if (call(done++, context))
			break;
	return done;
}

/* The congestion control of a socket may be asked for. A module cannot set another one, as the kernel's function is its
 * own: a program that does so ends its run. */
#define bpf_getsockopt(sk, level, option, into, size) \
	({ strscpy_pad((char *)(into), inet_csk(sk)->icsk_ca_ops->name, size); 0; })
#define bpf_setsockopt(sk, level, option, value, size) \
	({ panic("bpf_setsockopt: a native module cannot set another congestion control\n"); 0; })

/* Maps of BPF_MAP_TYPE_SK_STORAGE: something of a socket, which is freed when the congestion control leaves it. */
#undef __uint
#undef __type
#undef __array
#define __uint(name, number)		int (*name)[number]
#define __type(name, kind)		typeof(kind) *name
#define __array(name, kind)		typeof(kind) *name[]
#define bpf_sk_storage_get(map, sk, first, flags) native_storage_get(map, sk, first, sizeof(*(map)->value), flags)
#define bpf_sk_storage_delete(map, sk)	native_storage_free(map, sk)

struct native_storage {
	struct hlist_node node;
	const void *map;
	const void *sk;
	u64 value[];
};

static __maybe_unused DEFINE_HASHTABLE(native_storages, 10);
static __maybe_unused DEFINE_SPINLOCK(native_storages_lock);

static inline struct native_storage *native_storage_of(const void *map, const void *sk)
{
	struct native_storage *each;

	hash_for_each_possible(native_storages, each, node, (unsigned long)sk)
		if (each->sk == sk && (!map || each->map == map))
			return each;
	return NULL;
}

static inline void *native_storage_get(const void *map, const void *sk, const void *first, size_t size, u64 flags)
{
	struct native_storage *found;

	spin_lock_bh(&native_storages_lock);
	found = native_storage_of(map, sk);
	if (!found && flags & BPF_SK_STORAGE_GET_F_CREATE)
		found = kzalloc(struct_size(found, value, DIV_ROUND_UP(size, sizeof(u64))), GFP_ATOMIC);
	if (found && !found->sk) {
		found->map = map;
		found->sk = sk;
		if (first)
			memcpy(found->value, first, size);
		hash_add(native_storages, &found->node, (unsigned long)sk);
	}
	spin_unlock_bh(&native_storages_lock);
	return found ? found->value : NULL;
}

/* The storage of a socket in a map, or one of those in all maps. */
static inline long native_storage_free(const void *map, const void *sk)
{
	struct native_storage *found;

	spin_lock_bh(&native_storages_lock);
	found = native_storage_of(map, sk);
	if (found)
		hash_del(&found->node);
	spin_unlock_bh(&native_storages_lock);
	kfree(found);
	return found ? 0 : -ENOENT;
}

/* bpf/bpf_core_read.h: the structures are the running kernel's, and so are the offsets. */
#define native_arrow_1(s, a)		((s)->a)
#define native_arrow_2(s, a, b)		((s)->a->b)
#define native_arrow_3(s, a, b, c)	((s)->a->b->c)
#define native_arrow_4(s, a, b, c, d)	((s)->a->b->c->d)
#define native_arrow_5(s, a, b, c, d, e) ((s)->a->b->c->d->e)
#define BPF_CORE_READ(s, ...)		CONCATENATE(native_arrow_, COUNT_ARGS(__VA_ARGS__))(s, __VA_ARGS__)
#define BPF_CORE_READ_INTO(into, s, ...) ({ *(into) = BPF_CORE_READ(s, __VA_ARGS__); 0; })
#define BPF_PROBE_READ(s, ...)		BPF_CORE_READ(s, __VA_ARGS__)
#define BPF_PROBE_READ_INTO(into, s, ...) BPF_CORE_READ_INTO(into, s, __VA_ARGS__)
#define BPF_CORE_READ_BITFIELD(s, field) ((s)->field)
#define BPF_CORE_READ_BITFIELD_PROBED(s, field) ((s)->field)
#define BPF_CORE_WRITE_BITFIELD(s, field, value) ((s)->field = (value))
#define bpf_core_read(into, size, from)	({ memcpy(into, from, size); 0L; })
#define bpf_probe_read_kernel(into, size, from) ({ memcpy(into, from, size); 0L; })
#define bpf_core_cast(pointer, type)	((typeof(type) *)(pointer))
#define bpf_rdonly_cast(pointer, type)	((void *)(pointer))

/* bpf/bpf_tracing.h: the kernel calls the program as it calls any other function. */
#define BPF_PROG(name, ...)		name(__VA_ARGS__)

/* bpf/bpf_endian.h */
#define bpf_htons(x)			htons(x)
#define bpf_ntohs(x)			ntohs(x)
#define bpf_htonl(x)			htonl(x)
#define bpf_ntohl(x)			ntohl(x)

/* bpf_tcp_helpers.h of Linux before 6.10 */
#define BPF_STRUCT_OPS(name, ...)	BPF_PROG(name, __VA_ARGS__)
#define BPF_TCP_OPS_0(name, result)	result name(void)
#define BPF_TCP_OPS_1(name, result, t1, a1) result name(t1 a1)
#define BPF_TCP_OPS_2(name, result, t1, a1, t2, a2) result name(t1 a1, t2 a2)
#define BPF_TCP_OPS_3(name, result, t1, a1, t2, a2, t3, a3) result name(t1 a1, t2 a2, t3 a3)
#define BPF_TCP_OPS_4(name, result, t1, a1, t2, a2, t3, a3, t4, a4) result name(t1 a1, t2 a2, t3 a3, t4 a4)

/* bpf_tracing_net.h: these take a constant socket, and give one that the program may write. */
#undef tcp_sk
#undef inet_csk
#define tcp_sk(sk)			((struct tcp_sock *)(sk))
#define inet_csk(sk)			((struct inet_connection_sock *)(sk))

/* Flags of an ACK, which are net/ipv4/tcp_input.c's own. */
#define FLAG_DATA_ACKED			0x04
#define FLAG_SYN_ACKED			0x10
#define FLAG_DATA_SACKED		0x20
#define FLAG_SND_UNA_ADVANCED		0x400
#define FLAG_ACKED			(FLAG_DATA_ACKED | FLAG_SYN_ACKED)
#define FLAG_FORWARD_PROGRESS		(FLAG_ACKED | FLAG_DATA_SACKED)

/* The program is registered by the C file that includes it, and not by a module that it is made of. */
#undef module_init
#undef module_exit
#undef __init
#undef __exit
#undef MODULE_LICENSE
#define module_init(function)
#define module_exit(function)
#define __init				__maybe_unused
#define __exit				__maybe_unused
#define MODULE_LICENSE(text)

/* The kernel's macros of these names are common names of variables. */
#undef current
