// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * q_psp.c	What tc (iproute2) needs to configure and show psp.
 *
 * tc loads q_psp.so from its plugin directory, or from the one TC_LIB_DIR
 * names, and looks for the symbol psp_qdisc_util. iproute2 installs no header
 * for plugins, so the few things used of it are declared here: the structure
 * as it has been since 5.8 (July 2020; has_block was added at its end then),
 * and functions that tc exports.
 *
 * Rates are in bit/s, with the suffixes of tc(8); times in ns, us, ms, s.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pkt_sch_psp.h"

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block_idx, bool *has);
};

/* Exported by tc; output in text and in JSON (-j) through the same calls. */
enum { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4, COLOR_NONE = 6 };
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int len);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta,
		       int len, unsigned short flags);
int print_color_string(int type, int color, const char *key, const char *fmt,
		       const char *value);
int print_color_u64(int type, int color, const char *key, const char *fmt,
		    uint64_t value);
int print_color_s64(int type, int color, const char *key, const char *fmt,
		    int64_t value);

#define ROOM	1024	/* bytes; tc's request has more to spare */
#define WIRE_OVERHEAD	24
#define WIRE_MPU	84

struct unit {
	const char *name;
	double factor;
};

static const struct unit rates[] = {
	{ "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 },
	{ "gbit", 1e9 }, { "tbit", 1e12 }, { "kibit", 1024 },
	{ "mibit", 1048576 }, { "gibit", 1073741824 }, { "bps", 8 },
	{ "kbps", 8e3 }, { "mbps", 8e6 }, { "gbps", 8e9 }, { NULL, 0 },
};
static const struct unit times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 },
};
static const struct unit bare[] = { { "", 1 }, { NULL, 0 } };

static const char * const framings[] = { "wire", "ethernet", "ip", NULL };
static const __s32 overheads[] = { WIRE_OVERHEAD, 4, -14 };
static const __u32 mpus[] = { WIRE_MPU, 64, 0 };
static const char * const modes[] = { "timer", "gap", NULL };
static const char * const departures[] = { "start", "end", NULL };

static const char usage_qdisc[] =
	"... psp [ mode timer | gap ] [ default MINOR ] [ line RATE ]";
static const char usage_class[] =
	"... psp [ rate RATE ] [ framing wire | ethernet | ip ] [ overhead BYTES ] [ mpu BYTES ]\n"
	"        [ departure start | end ] [ dither TIME ] [ seed NUMBER ]";

/* A number with one of the units. Whole numbers are exact to 64 bits. */
static bool quantity(const char *text, const struct unit *unit, __u64 *value)
{
	unsigned long long whole;
	char *rest, *rest_whole;
	double number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtod(text, &rest);
	whole = strtoull(text, &rest_whole, 10);
	for (; unit->name; unit++) {
		if (strcasecmp(rest, unit->name))
			continue;
		if (number * unit->factor > 18446744073709551615.0)
			return false;
		*value = rest == rest_whole ?
			 whole * (unsigned long long)unit->factor :
			 (__u64)(number * unit->factor + 0.5);
		return !errno;
	}
	return false;
}

static bool integer(const char *text, int base, long least, long most,
		    long *value)
{
	char *rest;

	*value = strtol(text, &rest, base);
	return *text && !*rest && *value >= least && *value <= most;
}

static int choice(const char *text, const char * const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}

static int refuse(const char *key, const char *value, const char *instead)
{
	fprintf(stderr, "psp: %s \"%s\": %s\n", key, value, instead);
	return -1;
}

static int unknown(const char *key, const char *usage)
{
	if (strcmp(key, "help"))
		fprintf(stderr, "psp: \"%s\" is unknown here, or has no value\n",
			key);
	fprintf(stderr, "Usage: %s\n", usage);
	return -1;
}

static int parse_qdisc(const struct qdisc_util *qu, int argc, char **argv,
		       struct nlmsghdr *n, const char *dev)
{
	struct rtattr *nest = addattr_nest(n, n->nlmsg_len + ROOM, TCA_OPTIONS);

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		const char *key = argv[0], *value = argv[1];

		if (argc < 2)
			return unknown(key, usage_qdisc);
		if (!strcmp(key, "mode")) {
			int i = choice(value, modes);
			__u8 mode = i;

			if (i < 0)
				return refuse(key, value, "write timer or gap");
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_MODE, &mode, 1);
		} else if (!strcmp(key, "default")) {
			long i;
			__u32 minor;

			if (!integer(value, 16, 0, 0xffff, &i))
				return refuse(key, value, "write a minor number, hexadecimal as in class ids");
			minor = i;
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_DEFAULT, &minor, 4);
		} else if (!strcmp(key, "line")) {
			__u64 rate;

			if (!quantity(value, rates, &rate))
				return refuse(key, value, "write a rate, as in 1gbit");
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_LINE_RATE64, &rate, 8);
		} else {
			return unknown(key, usage_qdisc);
		}
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int parse_class(const struct qdisc_util *qu, int argc, char **argv,
		       struct nlmsghdr *n, const char *dev)
{
	struct rtattr *nest = addattr_nest(n, n->nlmsg_len + ROOM, TCA_OPTIONS);
	bool tell = n->nlmsg_flags & NLM_F_CREATE;
	__s32 overhead = WIRE_OVERHEAD;
	__u32 mpu = WIRE_MPU;
	__u64 number;
	long i;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		const char *key = argv[0], *value = argv[1];

		if (argc < 2)
			return unknown(key, usage_class);
		if (!strcmp(key, "rate")) {
			if (!quantity(value, rates, &number))
				return refuse(key, value, "write a rate, as in 100mbit");
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_RATE64, &number, 8);
		} else if (!strcmp(key, "framing")) {
			i = choice(value, framings);
			if (i < 0)
				return refuse(key, value, "write wire, ethernet or ip");
			overhead = overheads[i];
			mpu = mpus[i];
			tell = true;
		} else if (!strcmp(key, "overhead")) {
			if (!integer(value, 10, -4096, 4096, &i))
				return refuse(key, value, "write bytes, -4096 to 4096");
			overhead = i;
			tell = true;
		} else if (!strcmp(key, "mpu")) {
			if (!integer(value, 10, 0, 0xffff, &i))
				return refuse(key, value, "write bytes, 0 to 65535");
			mpu = i;
			tell = true;
		} else if (!strcmp(key, "departure")) {
			__u8 departure;

			i = choice(value, departures);
			if (i < 0)
				return refuse(key, value, "write start or end");
			departure = i;
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_DEPARTURE, &departure, 1);
		} else if (!strcmp(key, "dither")) {
			if (!quantity(value, times, &number))
				return refuse(key, value, "write a time with its unit, as in 12us");
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_DITHER64, &number, 8);
		} else if (!strcmp(key, "seed")) {
			if (!quantity(value, bare, &number))
				return refuse(key, value, "write a whole number");
			addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_SEED64, &number, 8);
		} else {
			return unknown(key, usage_class);
		}
	}
	if (tell) {	/* a new class counts what the wire carries */
		addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_OVERHEAD, &overhead, 4);
		addattr_l(n, n->nlmsg_len + ROOM, TCA_PSP_MPU, &mpu, 4);
	}
	addattr_nest_end(n, nest);
	return 0;
}

/* ---- output ---- */

static __u64 number_of(struct rtattr *attr)
{
	__u64 wide;
	__u32 word;

	switch (RTA_PAYLOAD(attr)) {
	case 1:
		return *(__u8 *)RTA_DATA(attr);
	case 4:
		memcpy(&word, RTA_DATA(attr), 4);
		return word;
	case 8:
		memcpy(&wide, RTA_DATA(attr), 8);
		return wide;
	}
	return 0;
}

/* In text the largest unit in which it is whole; in JSON bit/s. */
static void print_rate(const char *key, const char *format, __u64 rate)
{
	static const char * const names[] = { "bit", "Kbit", "Mbit", "Gbit" };
	char text[32];
	__u64 shown = rate;
	int i;

	for (i = 0; i < 3 && shown && shown % 1000 == 0; i++)
		shown /= 1000;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)shown,
		 names[i]);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, format, text);
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, rate);
}

static void print_number(const char *key, const char *format, __u64 value)
{
	print_color_u64(PRINT_ANY, COLOR_NONE, key, format, value);
}

static int print_options(const struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	struct rtattr *tb[TCA_PSP_MAX + 1];
	__u64 value;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_PSP_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt),
			   NLA_F_NESTED);
	if (tb[TCA_PSP_MODE])
		print_color_string(PRINT_ANY, COLOR_NONE, "mode", "mode %s ",
				   modes[number_of(tb[TCA_PSP_MODE]) != 0]);
	if (tb[TCA_PSP_DEFAULT])
		print_number("default", "default %#llx ",
			     number_of(tb[TCA_PSP_DEFAULT]));
	if (tb[TCA_PSP_LINE_RATE64]) {
		value = number_of(tb[TCA_PSP_LINE_RATE64]);
		if (value)
			print_rate("line_rate", "line %s ", value);
	}
	if (tb[TCA_PSP_RATE64])
		print_rate("rate", "rate %s ", number_of(tb[TCA_PSP_RATE64]));
	if (tb[TCA_PSP_OVERHEAD])
		print_color_s64(PRINT_ANY, COLOR_NONE, "overhead",
				"overhead %lld ",
				(__s32)number_of(tb[TCA_PSP_OVERHEAD]));
	if (tb[TCA_PSP_MPU])
		print_number("mpu", "mpu %llu ", number_of(tb[TCA_PSP_MPU]));
	if (tb[TCA_PSP_DEPARTURE])
		print_color_string(PRINT_ANY, COLOR_NONE, "departure",
				   "departure %s ",
				   departures[number_of(tb[TCA_PSP_DEPARTURE]) != 0]);
	if (tb[TCA_PSP_DITHER64]) {
		value = number_of(tb[TCA_PSP_DITHER64]);
		if (value) {
			print_number("dither_ns", "dither %lluns ", value);
			if (tb[TCA_PSP_SEED64])
				print_number("seed", "seed %llu ",
					     number_of(tb[TCA_PSP_SEED64]));
		}
	}
	return 0;
}

static int print_xstats(const struct qdisc_util *qu, FILE *f,
			struct rtattr *attr)
{
	struct tc_psp_xstats x = { 0 };
	size_t len = RTA_PAYLOAD(attr);

	(void)qu;
	(void)f;
	memcpy(&x, RTA_DATA(attr), len < sizeof(x) ? len : sizeof(x));
	print_number("paced_packets", "  paced %llu pkt", x.packets);
	print_number("paced_bytes", " %llu bytes", x.bytes);
	print_number("dropped", " dropped %llu", x.dropped);
	print_number("segmented", " segmented %llu", x.segmented);
	print_number("late", "\n  late %llu", x.late);
	print_number("late_ns", " sum %lluns", x.late_ns);
	print_number("late_max_ns", " max %lluns", x.late_max_ns);
	print_number("dither_sum_ns", " dithered %lluns", x.dither_ns);
	print_number("waited_ns", " waited %lluns", x.waited_ns);
	if (x.pause_frames) {
		print_number("gaps", "\n  gaps %llu", x.gaps);
		print_number("pause_frames", " pause %llu frames",
			     x.pause_frames);
		print_number("gap_bytes", " %llu bytes", x.gap_bytes);
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "\n");
	return 0;
}

struct qdisc_util psp_qdisc_util = {
	.id		= "psp",
	.parse_qopt	= parse_qdisc,
	.print_qopt	= print_options,
	.print_xstats	= print_xstats,
	.parse_copt	= parse_class,
	.print_copt	= print_options,
};
