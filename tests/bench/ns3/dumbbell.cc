// SPDX-License-Identifier: Apache-2.0
//
// The reference of `make bench virtual`: one bulk TCP flow over a dumbbell in ns-3, as it comes from Debian.
//
// In: rate (bit/s), RTT (ns), duration (s) as arguments. Out: one JSON object: what crossed the bottleneck both
// ways (packets), what the receiver got (bytes), and the wall time of the simulation itself, without its set-up.
// The same shape as ours: two hosts, two routers, 10 Gbit/s access (the bottleneck's rate if that is more), CUBIC,
// 1500-byte packets, SACK and timestamps, a drop-tail buffer of one BDP, the whole delay on the middle link.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace
{

constexpr uint32_t MTU = 1500;
constexpr uint32_t SEGMENT = 1448; // MTU less IPv4 and TCP headers with timestamps
constexpr uint32_t PPP_HEADER = 2; // ns-3's point-to-point links count no Ethernet header

uint64_t g_crossed = 0;

void
Crossed(Ptr<const Packet>)
{
    g_crossed++;
}

NetDeviceContainer
Join(NodeContainer nodes, uint64_t rate, uint64_t delayNs, const std::string& queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetDeviceAttribute("Mtu", UintegerValue(MTU));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delayNs)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link.Install(nodes);
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 4)
    {
        std::cerr << "usage: dumbbell RATE_BPS RTT_NS SECONDS\n";
        return 2;
    }
    const uint64_t rate = std::strtoull(argv[1], nullptr, 10);
    const uint64_t rttNs = std::strtoull(argv[2], nullptr, 10);
    const double seconds = std::strtod(argv[3], nullptr);
    const uint64_t bdp = static_cast<uint64_t>(static_cast<double>(rate) / 8 * static_cast<double>(rttNs) / 1e9);
    const uint64_t window = 4 * bdp + (4 << 20);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window));

    NodeContainer nodes;
    nodes.Create(4); // host, router, router, host
    const uint64_t access = std::max<uint64_t>(rate, 10'000'000'000);
    const uint64_t packets = std::max<uint64_t>(bdp / (MTU + PPP_HEADER), 10);
    NodeContainer first(nodes.Get(0), nodes.Get(1));
    NodeContainer core(nodes.Get(1), nodes.Get(2));
    NodeContainer last(nodes.Get(2), nodes.Get(3));
    // The access queues never fill: a host may hand over a whole window at once.
    const std::string plenty = std::to_string(8 * packets + 10'000) + "p";
    NetDeviceContainer left = Join(first, access, 0, plenty);
    NetDeviceContainer middle = Join(core, rate, rttNs / 2, std::to_string(packets) + "p");
    NetDeviceContainer right = Join(last, access, 0, plenty);

    InternetStackHelper stack;
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.1.0", "255.255.255.0");
    addresses.Assign(left);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    addresses.Assign(middle);
    addresses.SetBase("10.0.3.0", "255.255.255.0");
    Ipv4InterfaceContainer sinkAddress = addresses.Assign(right);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const uint16_t port = 5001;
    PacketSinkHelper sinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer sinkApp = sinkHelper.Install(nodes.Get(3));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(sinkAddress.GetAddress(1), port));
    source.SetAttribute("SendSize", UintegerValue(65536));
    ApplicationContainer sourceApp = source.Install(nodes.Get(0));
    sinkApp.Start(Seconds(0));
    sourceApp.Start(Seconds(0));

    for (uint32_t i = 0; i < 2; i++)
    {
        middle.Get(i)->TraceConnectWithoutContext("MacRx", MakeCallback(&Crossed));
    }
    Simulator::Stop(Seconds(seconds));
    const auto begun = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    const uint64_t received = DynamicCast<PacketSink>(sinkApp.Get(0))->GetTotalRx();
    Simulator::Destroy();

    std::cout << "{\"packets\": " << g_crossed << ", \"received_bytes\": " << received
              << ", \"virtual_s\": " << seconds << ", \"wall_s\": " << wall.count() << "}\n";
    return 0;
}
