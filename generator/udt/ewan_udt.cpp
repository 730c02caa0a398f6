/* ewan-udt: one transfer by UDT (Gu and Grossman, Computer Networks 51, 2007), over Debian's libudt 4.11.
 *
 * In: the command line; SIGTERM or SIGINT ends it early. Out: one line of JSON on standard output, whatever ended it;
 * exit status 1, with one line on standard error, where there was no transfer. Times are ns of CLOCK_MONOTONIC, which
 * both ends share; `begun_ns` is that of this process's start, taken before the library's initialiser, which sleeps
 * 100 ms to measure the processor's clock. generator/external/udt.py writes the command lines and reads the lines.
 *
 *   ewan-udt receive --address ADDRESS --port P [--bin-ns N] [--buffer B] [--dscp D] [--bytes B]
 *   ewan-udt send --address ADDRESS --port P [--bin-ns N] [--buffer B] [--dscp D] [--after-ns N] [--bytes B] [--for-ns N]
 *
 * The address and the port are the receiver's. A sender begins --after-ns after its process did. With --for-ns it ends
 * so long after that, whatever is in flight; with --bytes when all of these are acknowledged; a receiver that knows them
 * notes what came when they are complete. --bin-ns: how often its state, or what came, is noted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include <udt/udt.h>

namespace {

const int64_t NS_PER_SECOND = 1000000000;
const int64_t NS_PER_MS = 1000000;
const int64_t NS_PER_US = 1000;
const int IP_UDP_BYTES = 28;   // what UDT_MSS counts beside UDT's own header and payload
const int IPV6_MORE_BYTES = 20; // UDT counts an IPv4 header, whatever it runs over
const int UDT_HEADER_BYTES = 16;
const int LEAST_WINDOW = 1024; // packets
const int64_t BUFFER_BYTES = 32000000;
const int CHUNK_PACKETS = 45; // a call's last packet holds what is left of it: calls are of full packets

int64_t begun_ns;

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Before all other initialisers of this program and its libraries, which are linked into it. */
__attribute__((constructor(101))) void begin() { begun_ns = now_ns(); }

void sleep_until(int64_t time_ns) {
    timespec until = {time_ns / NS_PER_SECOND, time_ns % NS_PER_SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

struct Request {
    bool sends = false;
    sockaddr_storage address = {};
    int port = 0, dscp = 0;
    int64_t after_ns = 0, bytes = -1, for_ns = -1, bin_ns = 0, buffer_bytes = BUFFER_BYTES;
};

/* Of one moment: of a receiver what it got since the one before, of a sender its state. */
struct Bin {
    int64_t time_ns;
    UDT::TRACEINFO seen;
    int64_t bytes;
};

/* All that is said at the end; guarded by `mutex`, but for `bytes`, which one thread counts up. */
struct Record {
    std::mutex mutex;
    UDTSOCKET socket = UDT::INVALID_SOCK;
    int64_t started_ns = -1, connected_ns = -1, last_ns = -1, payload_bytes = -1;
    std::atomic<int64_t> bytes{0}, latest_ns{-1};
    int64_t binned_bytes = 0;
    std::vector<Bin> bins;
};

Request request;
Record record;

/* What went wrong, in one line; the process ends. */
[[noreturn]] void fail(const std::string &what) {
    fprintf(stderr, "ewan-udt: %s\n", what.c_str());
    fflush(NULL);
    _exit(1);
}

std::string udt_error() {
    std::string text = UDT::getlasterror().getErrorMessage();
    text.erase(text.find_last_not_of(" .\n") + 1);
    return text;
}

void check(int result, const char *attempted) {
    if (result == UDT::ERROR) fail(std::string(attempted) + ": " + udt_error());
}

void check_call(int result, const char *attempted) {
    if (result < 0) fail(std::string(attempted) + ": " + strerror(errno));
}

template <typename Value> void set(UDTSOCKET socket, UDT::SOCKOPT name, Value value, const char *attempted) {
    check(UDT::setsockopt(socket, 0, name, &value, sizeof value), attempted);
}

/* As `check`, of a socket that another thread may have closed because it ends the process. */
void check_open(int result, const char *attempted) {
    if (result != UDT::ERROR) return;
    std::string what = std::string(attempted) + ": " + udt_error();
    record.mutex.lock();
    fail(what);
}

// What is measured

/* With the record locked. The last bin of a run is as long as what is left of it. UDT tells nothing of a connection that
 * its other end has closed: what came until then came in full packets. */
void note(int64_t time_ns) {
    if (record.socket == UDT::INVALID_SOCK) return;
    Bin bin = record.bins.empty() ? Bin() : record.bins.back();
    int64_t bytes = record.bytes;
    bin.time_ns = time_ns;
    bin.bytes = bytes - record.binned_bytes;
    if (UDT::perfmon(record.socket, &bin.seen, true) == UDT::ERROR) {
        if (request.sends || bin.bytes == 0) return;
        bin.seen.pktRecv = (bin.bytes + record.payload_bytes - 1) / record.payload_bytes;
        bin.seen.pktRecvTotal += bin.seen.pktRecv;
    }
    record.binned_bytes = bytes;
    record.bins.push_back(bin);
}

void print_number(const char *key, int64_t value) {
    if (value < 0)
        printf("\"%s\": null, ", key);
    else
        printf("\"%s\": %lld, ", key, static_cast<long long>(value));
}

void start(void *(*what)(void *), void *of) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, what, of) != 0) fail("there is no room for a thread");
    pthread_detach(thread);
}

void *gives_up(void *) {
    sleep_until(now_ns() + NS_PER_SECOND);
    _exit(0);
}

/* Prints the record and ends the process: UDT's own threads are not waited for long. Keeps the record locked, so that no
 * other thread says what the end does to it. */
[[noreturn]] void finish(bool whole) {
    record.mutex.lock();
    int64_t ended_ns = now_ns();
    note(ended_ns);
    if (record.connected_ns < 0) fail(request.sends ? "ended before it was connected" : "nobody sent anything");
    printf("{\"format\": \"ewan-udt/1\", \"end\": \"%s\", ", request.sends ? "send" : "receive");
    print_number("begun_ns", begun_ns);
    print_number("started_ns", record.started_ns);
    print_number("connected_ns", record.connected_ns);
    print_number("ended_ns", ended_ns);
    print_number("last_ns", record.latest_ns);
    print_number("payload_bytes", record.payload_bytes);
    print_number("bytes", record.bytes);
    printf("\"whole\": %s, \"bins\": [", whole ? "true" : "false");
    const char *comma = "";
    for (const Bin &bin : record.bins) {
        const UDT::TRACEINFO &seen = bin.seen;
        printf("%s\n{\"time_ns\": %lld, ", comma, static_cast<long long>(bin.time_ns));
        if (request.sends) {
            printf("\"sent\": %lld, \"retransmitted\": %d, \"lost\": %d, ", static_cast<long long>(seen.pktSentTotal),
                   seen.pktRetransTotal, seen.pktSndLossTotal);
            printf("\"window\": %d, \"in_flight\": %d, \"rtt_ns\": %.0f, \"period_ns\": %.0f}", seen.pktCongestionWindow,
                   seen.pktFlightSize, seen.msRTT * NS_PER_MS, seen.usPktSndPeriod * NS_PER_US);
        } else {
            printf("\"bytes\": %lld, \"packets\": %lld, ", static_cast<long long>(bin.bytes),
                   static_cast<long long>(seen.pktRecv));
            printf("\"received\": %lld, \"missed\": %d}", static_cast<long long>(seen.pktRecvTotal), seen.pktRcvLossTotal);
        }
        comma = ",";
    }
    printf("]}\n");
    fflush(NULL);
    if (request.sends) {
        // The other end is told at once, and hears of no more.
        start(gives_up, NULL);
        linger none = {1, 0};
        UDT::setsockopt(record.socket, 0, UDT_LINGER, &none, sizeof none);
        UDT::close(record.socket);
    }
    _exit(0);
}

/* Notes the record at each multiple of the bin's width from the start of the process on. */
void *notes(void *) {
    for (int64_t number = 1;; number++) {
        int64_t time_ns = begun_ns + number * request.bin_ns;
        sleep_until(time_ns);
        std::lock_guard<std::mutex> guard(record.mutex);
        note(time_ns);
    }
    return NULL;
}

void *waits_for_signals(void *signals) {
    int signal;
    while (sigwait(static_cast<sigset_t *>(signals), &signal) != 0) {
    }
    finish(false);
}

/* Ends a sender at its time, without what is still in its buffer. */
void *ends_in_time(void *) {
    sleep_until(begun_ns + request.after_ns + request.for_ns);
    finish(true);
}

// Sockets

/* The largest MTU of all interfaces but loopback: packets of a receiver are as large as its peer's are. */
int largest_mtu() {
    int largest = 0, socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    ifaddrs *all;
    check_call(getifaddrs(&all), "looking for interfaces");
    for (ifaddrs *each = all; each; each = each->ifa_next) {
        ifreq asked = {};
        strncpy(asked.ifr_name, each->ifa_name, IFNAMSIZ - 1);
        if (!(each->ifa_flags & IFF_LOOPBACK) && ioctl(socket, SIOCGIFMTU, &asked) == 0)
            largest = std::max(largest, asked.ifr_mtu);
    }
    freeifaddrs(all);
    close(socket);
    return largest;
}

bool is_v6() { return request.address.ss_family == AF_INET6; }

const sockaddr *plain(const sockaddr_storage &address) { return reinterpret_cast<const sockaddr *>(&address); }

socklen_t size_of() { return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

/* Of the route to the receiver. */
int mtu_to_it() {
    int mtu, socket = ::socket(request.address.ss_family, SOCK_DGRAM, 0);
    socklen_t length = sizeof mtu;
    check_call(connect(socket, plain(request.address), size_of()), "finding a route");
    int level = is_v6() ? int(IPPROTO_IPV6) : int(IPPROTO_IP);
    check_call(getsockopt(socket, level, is_v6() ? IPV6_MTU : IP_MTU, &mtu, &length), "reading a route's MTU");
    close(socket);
    return mtu;
}

/* A UDT socket over a UDP socket at an address; `mtu`: the largest IP packet. */
UDTSOCKET bound(const sockaddr_storage &at, int mtu) {
    UDTSOCKET socket = UDT::socket(at.ss_family, SOCK_STREAM, 0);
    if (socket == UDT::INVALID_SOCK) fail("making a socket: " + udt_error());
    if (is_v6()) mtu -= IPV6_MORE_BYTES;
    int packets = std::max<int64_t>(LEAST_WINDOW, request.buffer_bytes / (mtu - IP_UDP_BYTES - UDT_HEADER_BYTES) + 1);
    set(socket, UDT_MSS, mtu, "setting the size of packets");
    set(socket, UDT_FC, packets, "setting the window");
    set(socket, UDT_SNDBUF, packets * (mtu - IP_UDP_BYTES), "setting the sender's buffer");
    set(socket, UDT_RCVBUF, packets * (mtu - IP_UDP_BYTES), "setting the receiver's buffer");
    set(socket, UDT_LINGER, linger{1, 86400}, "setting what close waits for");

    int udp = ::socket(at.ss_family, SOCK_DGRAM, 0), tos = request.dscp << 2;
    check_call(udp, "making a UDP socket");
    int level = is_v6() ? int(IPPROTO_IPV6) : int(IPPROTO_IP);
    check_call(setsockopt(udp, level, is_v6() ? IPV6_TCLASS : IP_TOS, &tos, sizeof tos), "setting the DSCP");
    check_call(bind(udp, plain(at), size_of()), "binding a UDP socket to its address");
    check(UDT::bind2(socket, udp), "binding a UDT socket to its UDP socket");
    // UDT's bind asks for buffers of its own, which the system cuts to what anybody may have.
    int room = std::min<int64_t>(request.buffer_bytes, 1 << 30);
    setsockopt(udp, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(udp, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    return socket;
}

void connected(UDTSOCKET socket) {
    int mss, length = sizeof mss;
    check(UDT::getsockopt(socket, 0, UDT_MSS, &mss, &length), "reading the size of packets");
    std::lock_guard<std::mutex> guard(record.mutex);
    record.socket = socket;
    record.connected_ns = now_ns();
    record.payload_bytes = mss - IP_UDP_BYTES - UDT_HEADER_BYTES;
}

void receive() {
    UDTSOCKET listener = bound(request.address, largest_mtu());
    check(UDT::listen(listener, 1), "listening");
    record.started_ns = now_ns();
    sockaddr_storage peer;
    int length = sizeof peer;
    UDTSOCKET socket = UDT::accept(listener, reinterpret_cast<sockaddr *>(&peer), &length);
    if (socket == UDT::INVALID_SOCK) fail("accepting a connection: " + udt_error());
    connected(socket);
    std::vector<char> buffer(1 << 20);
    for (;;) {
        int got = UDT::recv(socket, buffer.data(), buffer.size(), 0);
        if (got == UDT::ERROR) break; // the sender has closed it
        record.bytes += got;
        record.latest_ns = now_ns();
        if (record.bytes == request.bytes) {
            std::lock_guard<std::mutex> guard(record.mutex);
            note(record.latest_ns);
        }
    }
    finish(true);
}

void send() {
    sockaddr_storage any = {};
    any.ss_family = request.address.ss_family;
    UDTSOCKET socket = bound(any, mtu_to_it());
    sleep_until(begun_ns + request.after_ns);
    record.started_ns = now_ns();
    if (request.for_ns >= 0) start(ends_in_time, NULL);
    check_open(UDT::connect(socket, plain(request.address), size_of()), "connecting");
    connected(socket);
    const int64_t chunk = CHUNK_PACKETS * record.payload_bytes;
    std::vector<char> zeros(chunk);
    while (request.bytes < 0 || record.bytes < request.bytes) {
        int64_t wanted = request.bytes < 0 ? chunk : std::min(chunk, request.bytes - record.bytes);
        int sent = UDT::send(socket, zeros.data(), static_cast<int>(wanted), 0);
        check_open(sent, "sending");
        record.bytes += sent;
    }
    // Until the last byte is acknowledged: `close` itself looks only every second.
    for (int left = 1, length = sizeof left; left > 0;) {
        check_open(UDT::getsockopt(socket, 0, UDT_SNDDATA, &left, &length), "waiting for the last acknowledgement");
        if (left > 0) sleep_until(now_ns() + NS_PER_MS);
    }
    finish(true);
}

// The command line

int64_t number(const char *name, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || end == text || value < 0) fail(std::string(name) + " " + text + ": write a whole number");
    return value;
}

void read_address(const char *text) {
    sockaddr_in *v4 = reinterpret_cast<sockaddr_in *>(&request.address);
    sockaddr_in6 *v6 = reinterpret_cast<sockaddr_in6 *>(&request.address);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        request.address.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        request.address.ss_family = AF_INET6;
    else
        fail(std::string("--address ") + text + ": write an IPv4 or IPv6 address");
}

void read(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "";
    if (what != "send" && what != "receive") fail("write send or receive first");
    request.sends = what == "send";
    for (int at = 2; at < argc; at += 2) {
        std::string name = argv[at];
        if (at + 1 == argc) fail(name + " has no value");
        const char *text = argv[at + 1];
        if (name == "--address")
            read_address(text);
        else if (name == "--port")
            request.port = static_cast<int>(number("--port", text));
        else if (name == "--dscp")
            request.dscp = static_cast<int>(number("--dscp", text));
        else if (name == "--after-ns")
            request.after_ns = number("--after-ns", text);
        else if (name == "--bytes")
            request.bytes = number("--bytes", text);
        else if (name == "--for-ns")
            request.for_ns = number("--for-ns", text);
        else if (name == "--bin-ns")
            request.bin_ns = number("--bin-ns", text);
        else if (name == "--buffer")
            request.buffer_bytes = number("--buffer", text);
        else
            fail(name + ": no such option");
    }
    if (request.port < 1 || request.port > 65535) fail("--port: write 1 to 65535");
    if (request.address.ss_family == 0) fail("--address: write where the receiver is");
    // sockaddr_in and sockaddr_in6 have their port at the same place.
    reinterpret_cast<sockaddr_in *>(&request.address)->sin_port = htons(request.port);
}

} // namespace

int main(int argc, char **argv) {
    read(argc, argv);
    // In all threads but the one that waits for them.
    static sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    start(waits_for_signals, &ends);
    check(UDT::startup(), "starting UDT");
    if (request.bin_ns > 0) start(notes, NULL);
    request.sends ? send() : receive();
}
