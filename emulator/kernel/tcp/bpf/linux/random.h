/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <linux/module.h>

#define get_random_u32() bpf_get_prandom_u32()
