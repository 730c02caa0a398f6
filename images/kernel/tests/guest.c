// SPDX-License-Identifier: Apache-2.0
// Init of the virtual kernel in its tests: does what the kernel's parameter MODE says, prints what it saw, powers off.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

static void commands(void);

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

static void sleep_until(long long at)
{
	struct timespec then = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

static void spin_until(long long at)
{
	while (now() < at)
		;
}

#define DATAGRAMS 150
#define PERIOD 100000

// Datagrams at a period over the loopback device, each with the time at which it was sent, that a program receives which looks at
// the clock three times after each. The program polls when `poll` is set, also before the first one comes; else it sleeps in
// recv. Its socket has room for about ten of them. The longest lag is not that of the first one, before which programs waited longer.
static void datagrams(void (*wait_until)(long long), int poll)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 10000, received = 0;
	long long begin = now() + 10 * PERIOD, end = begin + (DATAGRAMS + 10LL) * PERIOD, lag = 0;
	struct timeval patience = { .tv_usec = 100000 };
	pid_t sender;

	commands();
	bind(fd, (void *)&to, sizeof(to));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	sender = fork();
	if (!sender) {
		long long message[100];

		for (int i = 0; i < DATAGRAMS; i++) {
			wait_until(begin + i * (long long)PERIOD);
			message[0] = now();
			sendto(fd, message, sizeof(message), 0, (void *)&to, sizeof(to));
		}
		_exit(0);
	}
	if (!poll)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (now() < end && received < DATAGRAMS) {
		long long message[100];

		if (recv(fd, message, sizeof(message), poll ? MSG_DONTWAIT : 0) < 0)
			continue;
		received++;
		if (now() - message[0] > lag && received > 1)
			lag = now() - message[0];
	}
	printf("received %d\nlag %lld\n", received, lag);
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
}

static void polling_receiver(void)
{
	datagrams(sleep_until, 1);
}

static void spinning_sender(void)
{
	datagrams(spin_until, 0);
}

static void both_spin(void)
{
	datagrams(spin_until, 1);
}

// Two programs hand each other a byte until 1 ms has passed.
static void ping_pong(void)
{
	int ends[2];
	long long begin = now(), turns = 0;
	char byte = 0;
	pid_t other;

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	other = fork();
	if (!other)
		while (read(ends[1], &byte, 1) == 1)
			write(ends[1], &byte, 1);
	while (now() - begin < 1000000) {
		write(ends[0], &byte, 1);
		turns += read(ends[0], &byte, 1);
	}
	printf("turns %lld\n", turns);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

// A system call with these values in all registers of floating point; those after it. Behind the call stands `next`.
#define ACROSS(name, next) \
static long name(long number, long a, long b, volatile char *touched, const char before[256], char after[256]) \
{ \
	long result; \
 \
	asm volatile("fldcw %[half]\n\tldmxcsr %[up]\n\t" \
		     "movups 0(%[in]), %%xmm0\n\tmovups 16(%[in]), %%xmm1\n\t" \
		     "movups 32(%[in]), %%xmm2\n\tmovups 48(%[in]), %%xmm3\n\t" \
		     "movups 64(%[in]), %%xmm4\n\tmovups 80(%[in]), %%xmm5\n\t" \
		     "movups 96(%[in]), %%xmm6\n\tmovups 112(%[in]), %%xmm7\n\t" \
		     "movups 128(%[in]), %%xmm8\n\tmovups 144(%[in]), %%xmm9\n\t" \
		     "movups 160(%[in]), %%xmm10\n\tmovups 176(%[in]), %%xmm11\n\t" \
		     "movups 192(%[in]), %%xmm12\n\tmovups 208(%[in]), %%xmm13\n\t" \
		     "movups 224(%[in]), %%xmm14\n\tmovups 240(%[in]), %%xmm15\n\t" \
		     "movb $1, (%[touched])\n\tsyscall\n\t" next \
		     "movups %%xmm0, 0(%[out])\n\tmovups %%xmm1, 16(%[out])\n\t" \
		     "movups %%xmm2, 32(%[out])\n\tmovups %%xmm3, 48(%[out])\n\t" \
		     "movups %%xmm4, 64(%[out])\n\tmovups %%xmm5, 80(%[out])\n\t" \
		     "movups %%xmm6, 96(%[out])\n\tmovups %%xmm7, 112(%[out])\n\t" \
		     "movups %%xmm8, 128(%[out])\n\tmovups %%xmm9, 144(%[out])\n\t" \
		     "movups %%xmm10, 160(%[out])\n\tmovups %%xmm11, 176(%[out])\n\t" \
		     "movups %%xmm12, 192(%[out])\n\tmovups %%xmm13, 208(%[out])\n\t" \
		     "movups %%xmm14, 224(%[out])\n\tmovups %%xmm15, 240(%[out])\n\t" \
		     : "=a"(result) \
		     : "0"(number), "D"(a), "S"(b), [in] "r"(before), [out] "r"(after), [touched] "r"(touched), \
		       [half] "m"((short){ 0x0e7f }), [up] "m"((int){ 0x5f80 }) \
		     : "cc", "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
		       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"); \
	return result; \
}

ACROSS(across, "")
// As in the C library, where the kernel puts a jump into itself in place of both.
ACROSS(across_compared, "cmp $-4096, %%rax\n\t")

static int lost;

static void keep(const char *what, long number, long a, long b, int seed)
{
	char before[256], after[256];
	char *fresh = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned short half;
	unsigned int up;
	pid_t self = getpid();
	long result;

	for (int i = 0; i < 256; i++)
		before[i] = seed + 31 * i;
	result = (seed & 1 ? across : across_compared)(number, a, b, fresh, before, after);
	asm volatile("fnstcw %0\n\tstmxcsr %1" : "=m"(half), "=m"(up));
	if (memcmp(before, after, 256) || half != 0x0e7f || (up & 0xffc0) != 0x5f80) {
		printf("lost: %s %d\n", what, seed);
		fflush(stdout);
		lost = 1;
	}
	munmap(fresh, 4096);
	if (number == SYS_fork && getpid() != self)
		_exit(lost);
	if (number == SYS_fork) {
		int status;

		waitpid(result, &status, 0);
		lost |= WEXITSTATUS(status);
	}
}

static void spoil(int signal)
{
	keep("a signal's handler", SYS_getppid, 0, 0, 99);
}

static void *rounds(void *from)
{
	struct timespec moment = { .tv_nsec = 1000 };
	int seed = *(int *)from;

	for (int i = 0; i < 200; i++, seed += 7) {
		keep("a call", SYS_getppid, 0, 0, seed);
		keep("sleep, another task's turn", SYS_nanosleep, (long)&moment, 0, seed + 1);
		keep("a signal", SYS_kill, getpid(), SIGUSR1, seed + 2);
	}
	for (int i = 0; i < 5; i++)
		keep("a fork", SYS_fork, 0, 0, seed + i);
	return NULL;
}

// What a task has in its registers of floating point is its own, whatever else runs, in the same memory and beside it.
static void registers(void)
{
	int seeds[] = { 1, 50, 100, 150 }, status;
	pthread_t threads[3];
	pid_t beside;

	signal(SIGUSR1, spoil);
	beside = fork();
	if (!beside) {
		rounds(&seeds[3]);
		_exit(lost);
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, rounds, &seeds[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	waitpid(beside, &status, 0);
	printf(lost || status ? "lost\n" : "kept\n");
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

static void *echo(void *from)
{
	int *ends = from;
	char byte;

	while (read(ends[0], &byte, 1) == 1)
		write(ends[3], &byte, 1);
	return NULL;
}

static volatile int alarms;

static void count(int signal)
{
	alarms++;
}

// Calls from the same places over and over, which signals interrupt; threads and processes between them; addresses.
static void calls(void)
{
	struct sigaction again = { .sa_handler = count, .sa_flags = SA_RESTART }, not_again = { .sa_handler = count };
	struct itimerval soon = { .it_value = { .tv_usec = 100 } };
	int ends[4], restarted = 0, broken = 0, children = 0, status;
	char byte = 1, *at, *largest;
	pthread_t thread;

	pipe(ends);
	pipe(ends + 2);
	pthread_create(&thread, NULL, echo, ends);
	for (int i = 0; i < 1000; i++) {
		write(ends[1], &byte, 1);
		read(ends[2], &byte, 1);
	}
	close(ends[1]);
	pthread_join(thread, NULL);
	pipe(ends);
	for (int i = 0; i < 40; i++) {
		sigaction(SIGALRM, i % 2 ? &again : &not_again, NULL);
		if (i % 2 && !fork()) {
			usleep(1000);
			write(ends[1], &byte, 1);
			_exit(i);
		}
		setitimer(ITIMER_REAL, &soon, NULL);
		if (read(ends[0], &byte, 1) == 1)
			restarted++;
		else
			broken++;
	}
	while (wait(&status) > 0)
		children += WEXITSTATUS(status);
	printf("alarms %d restarted %d broken %d children %d\n", alarms, restarted, broken, children);
	at = mmap((void *)0x60000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	printf("kernel's address %s\n", at == MAP_FAILED ? "refused" : "given");
	largest = mmap(NULL, 3L << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	largest[0] = largest[(3L << 30) - 1] = 1;
	printf("much memory %d\n", largest[0] + largest[(3L << 30) - 1]);
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
		{ "polling-receiver", polling_receiver }, { "spinning-sender", spinning_sender }, { "both-spin", both_spin },
		{ "ping-pong", ping_pong },
		{ "entropy", entropy }, { "facts", facts }, { "commands", commands }, { "datagram", datagram },
		{ "idle", idle }, { "registers", registers }, { "calls", calls },
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
