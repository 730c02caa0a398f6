/* ewan-mpi: what one rank of a parallel program does, by MPI: it computes, exchanges, and does so again.
 *
 *   ewan-mpi now                                              prints CLOCK_MONOTONIC, in ns
 *   ewan-mpi run PATTERN ITERATIONS BYTES COMPUTE_NS BEGIN_NS   a rank, started by mpirun
 *
 * In: the command line; EWAN_OUT in the environment. Out: EWAN_OUT/rank-N.csv, a row for each iteration: its number, when
 * it began and how long it took, in ns of CLOCK_MONOTONIC, which all nodes share. All ranks begin at BEGIN_NS, or as soon
 * as the last of them is there. Computing is sleeping: it takes no processor from other nodes of the machine.
 * Patterns are those of the scenario's `messages`: all-to-all is MPI_Alltoall, the exchange of FT and IS of the NAS
 * benchmarks; neighbour-exchange is two MPI_Sendrecv in a ring, as between the slabs of a grid; barrier is MPI_Barrier.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND 1000000000LL
enum { TAG = 1 };

static int rank, ranks;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static void sleep_until(int64_t time_ns) {
    struct timespec until = {time_ns / NS_PER_SECOND, time_ns % NS_PER_SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void fail(const char *what) {
    fprintf(stderr, "ewan-mpi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static int64_t number(const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0) fail("write whole numbers after the pattern");
    return value;
}

static void swap(int to, int from, char *out, char *in, int bytes) {
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, TAG, in, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(const char *pattern, char *out, char *in, int bytes) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    if (!strcmp(pattern, "barrier")) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(pattern, "all-to-all")) {
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    } else if (!strcmp(pattern, "neighbour-exchange")) {
        swap(next, before, out, in, bytes);
        if (ranks > 2) swap(before, next, out, in, bytes);
    } else if (!strcmp(pattern, "ping-pong")) {
        if (rank % 2) MPI_Recv(in, bytes, MPI_BYTE, rank ^ 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, rank ^ 1, TAG, MPI_COMM_WORLD);
        if (rank % 2 == 0) MPI_Recv(in, bytes, MPI_BYTE, rank ^ 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        fail("no such pattern");
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "now")) {
        printf("%lld\n", (long long)now_ns());
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7 || strcmp(argv[1], "run")) fail("write run PATTERN ITERATIONS BYTES COMPUTE_NS BEGIN_NS");
    const char *pattern = argv[2], *directory = getenv("EWAN_OUT");
    int64_t iterations = number(argv[3]), bytes = number(argv[4]), compute_ns = number(argv[5]);
    char *out = calloc(ranks, bytes + 1), *in = calloc(ranks, bytes + 1);
    int64_t *times = calloc(iterations, 2 * sizeof *times);
    if (!out || !in || !times || !directory) fail("there is no room, or no EWAN_OUT");

    MPI_Barrier(MPI_COMM_WORLD);
    sleep_until(number(argv[6]));
    for (int64_t turn = 0; turn < iterations; turn++) {
        int64_t start_ns = now_ns();
        if (compute_ns) sleep_until(start_ns + compute_ns);
        exchange(pattern, out, in, (int)bytes);
        times[2 * turn] = start_ns;
        times[2 * turn + 1] = now_ns() - start_ns;
    }

    char path[4096];
    snprintf(path, sizeof path, "%s/rank-%d.csv", directory, rank);
    FILE *file = fopen(path, "w");
    if (!file) fail("cannot write into EWAN_OUT");
    fprintf(file, "number,start_ns,duration_ns\n");
    for (int64_t turn = 0; turn < iterations; turn++)
        fprintf(file, "%lld,%lld,%lld\n", (long long)turn, (long long)times[2 * turn], (long long)times[2 * turn + 1]);
    if (fclose(file)) fail("cannot write into EWAN_OUT");
    MPI_Finalize();
    return 0;
}
