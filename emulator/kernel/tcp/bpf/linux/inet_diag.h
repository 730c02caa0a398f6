/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A BPF program cannot tell ss of itself. */
#pragma once
