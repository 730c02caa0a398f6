/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BPF programs are for kernels whose cong_control has four arguments, which is since Linux 6.10. */
#pragma once

#include <linux/module.h>

#define LINUX_VERSION_CODE KERNEL_VERSION(6, 10, 0)
