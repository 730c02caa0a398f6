/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions and numbers of the kernel's network that congestion controls written for BPF take from a header of this
 * name, where they bring none. */
#ifndef __BPF_TRACING_NET_H__
#define __BPF_TRACING_NET_H__

#include <net/tcp.h>

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_NAME_MAX 16
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_CONG_NEEDS_ECN 2
#define TCP_INFINITE_SSTHRESH 0x7fffffff

#define tcp_jiffies32 ((__u32)bpf_jiffies64())
#define after(a, b) before(b, a)

#endif
