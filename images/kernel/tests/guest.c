// SPDX-License-Identifier: Apache-2.0
// Init of the virtual kernel in its tests: does what the kernel's parameter MODE says, prints what it saw, powers off.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec ns(long long value)
{
	return (struct timespec){ value / 1000000000, value % 1000000000 };
}

static const long long delays[] = { 1, 2, 7, 999, 1000, 123457, 10000001, 1500000000 };
#define EACH_DELAY(d) for (const long long *d = delays; d < delays + sizeof(delays) / sizeof(*delays); d++)

// Lateness of each way to sleep, in ns.
static void sleeps(void)
{
	EACH_DELAY(d) {
		struct timespec t = ns(*d);
		long long begin = now();

		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		printf("relative %lld late %lld\n", *d, now() - begin - *d);
		begin = now();
		t = ns(begin + *d);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		printf("absolute %lld late %lld\n", *d, now() - begin - *d);
		begin = now();
		t = ns(*d);
		ppoll(NULL, 0, &t, NULL);
		printf("ppoll %lld late %lld\n", *d, now() - begin - *d);
	}
}

// How many reads are free, then what each costs.
static void reads(void)
{
	long long first, last, at;
	int n = 0;

	nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	for (first = last = now(); (at = now()) == first; n++)
		;
	printf("free %d\ncosts", n);
	for (int i = 0; i < 400; i++, last = at, at = now())
		printf(" %lld", at - (i ? last : first));
	printf("\n");
}

// The cycle counter over a sleep of 1 ms, then a loop on it.
static void cycles(void)
{
	unsigned int aux;
	unsigned long long begin = __rdtsc();

	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	printf("cycles %llu %llu\n", __rdtsc() - begin, __rdtscp(&aux) - begin);
	while (__rdtsc() - begin < 1000000000)
		;
	printf("over\n");
}

static void busy(void)
{
	long long begin = now(), n = 0;

	while (now() - begin < 1000000000)
		n++;
	printf("reads %lld\n", n);
}

// A neighbour that spins moves time only as far as the next event: sleeping and looking at the clock stays exact.
static void neighbour(void)
{
	pid_t spinner = fork();

	if (!spinner)
		for (long long begin = now(); now() - begin < 1000000000;)
			;
	for (int i = 0; i < 20; i++) {
		long long begin = now();

		nanosleep(&(struct timespec){ .tv_nsec = 10000001 }, NULL);
		printf("late %lld\n", now() - begin - 10000001);
	}
	kill(spinner, SIGKILL);
	waitpid(spinner, NULL, 0);
}

static void hex(const char *name, const unsigned char *bytes, int n)
{
	printf("%s ", name);
	for (int i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void show(const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY), n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	printf("%s: %.*s", path, n < 0 ? 0 : n, text);
}

static void entropy(void)
{
	unsigned char bytes[32];

	getrandom(bytes, sizeof(bytes), 0);
	hex("getrandom", bytes, sizeof(bytes));
	hex("auxv", (void *)getauxval(AT_RANDOM), 16);
	printf("stack %p heap %p\n", (void *)bytes, malloc(1));
	show("/proc/sys/kernel/random/boot_id");
	show("/proc/sys/net/ipv4/tcp_mem");
	printf("at %lld\n", now());
}

static void facts(void)
{
	struct utsname name;
	struct timespec resolution;

	uname(&name);
	clock_getres(CLOCK_MONOTONIC, &resolution);
	printf("release %s\nversion %s\nresolution %ld\n", name.release, name.version, resolution.tv_nsec);
	show("/proc/sys/net/ipv4/tcp_available_congestion_control");
}

static int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Each line of COMMANDS (separated by ;) alone, with its exit status.
static void commands(void)
{
	for (char *c = strtok(getenv("COMMANDS"), ";"); c; c = strtok(NULL, ";")) {
		for (char *p = c; *p; p++)
			if (*p == ',')
				*p = ' ';
		printf("%s: %d\n", c, run(c));
		fflush(stdout);
	}
}

// One datagram through a netem of 10 ms on the loopback device.
static void datagram(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 0;

	commands();
	bind(fd, (void *)&to, sizeof(to));
	for (int i = 0; i < 5; i++) {
		long long begin = now();

		sendto(fd, &byte, 1, 0, (void *)&to, sizeof(to));
		recv(fd, &byte, 1, 0);
		printf("late %lld\n", now() - begin - 10000000);
		usleep(i * 777);
	}
}

static volatile int stopped;

static void stop(int signal)
{
	stopped = 1;
}

static void idle(void)
{
	signal(SIGINT, stop);
	while (!stopped)
		usleep(10000);
	printf("stopped\n");
}

int main(void)
{
	static const struct { const char *name; void (*what)(void); } modes[] = {
		{ "sleeps", sleeps }, { "reads", reads }, { "busy", busy }, { "cycles", cycles }, { "neighbour", neighbour },
		{ "entropy", entropy }, { "facts", facts }, { "commands", commands }, { "datagram", datagram },
		{ "idle", idle },
	};
	const char *mode = getenv("MODE");

	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	mount("proc", "/proc", "proc", 0, NULL);
	for (unsigned int i = 0; mode && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(mode, modes[i].name))
			modes[i].what();
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
