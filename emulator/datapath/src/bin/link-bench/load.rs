//! Frames at a given rate, and what became of them. The blaster paces bursts by spinning on the clock; the sink
//! either counts (the interface's own counters, no cost) or keeps the kernel's stamp of every arrival.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ewan_datapath::packet::AfPacket;
use ewan_datapath::port::Port;
use ewan_system::clock::Clock;
use ewan_system::packet::PACKET_QDISC_BYPASS;
use ewan_system::schedule::{keep_to, set_realtime};
use ewan_system::socket::{self, interface_index, require_option, PacketAddress};
use ewan_system::Context;

use crate::net::{Net, HOST_CPU};

pub struct Load {
    /// Without FCS: 64 on the wire is 60 here.
    pub frame_bytes: usize,
    pub packets_per_second: f64,
    /// Frames handed to the kernel at once.
    pub burst: usize,
    pub seconds: f64,
    /// Past the queueing discipline, as the link's own ports send.
    pub bypass: bool,
}

pub struct LoadResult {
    pub packets: u64,
    pub packets_per_second: f64,
}

/// The sink's ring.
const SINK_BYTES: usize = 256 << 20;
const STAMP: usize = 34;
const SEQUENCE: usize = 42;

/// A UDP packet to nobody (the destination is no address of the receiver's, which drops it early).
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0u8; bytes];
    frame[..14].copy_from_slice(&[2, 0xe3, 0, 0, 0, 2, 2, 0xe3, 0, 0, 0, 1, 8, 0]);
    let length = ((bytes - 14) as u16).to_be_bytes();
    frame[14..34]
        .copy_from_slice(&[0x45, 0, length[0], length[1], 0, 1, 0x40, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame
}

pub fn send(net: &Net, load: &Load) -> Result<LoadResult, String> {
    net.inside("a", || {
        keep_to(&[HOST_CPU])?;
        if load.bypass {
            let _ = set_realtime(1); // A queueing discipline needs ksoftirqd, which a real-time thread starves.
        }
        let socket = socket::packet().attempting(|| "blaster")?;
        if load.bypass {
            require_option(&socket, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32, "PACKET_QDISC_BYPASS")?;
        }
        require_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(64i32 << 20), "SO_SNDBUFFORCE")?;
        let address = PacketAddress::new(interface_index("eth0")?, 0);
        socket::bind(&socket, &address).attempting(|| "blaster")?;
        blast(&socket, load)
    })
}

fn blast(socket: &OwnedFd, load: &Load) -> Result<LoadResult, String> {
    let clock = Clock::new();
    let mut frames: Vec<Vec<u8>> = (0..load.burst).map(|_| frame(load.frame_bytes)).collect();
    let mut pieces: Vec<libc::iovec> = frames
        .iter_mut()
        .map(|frame| libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = pieces
        .iter_mut()
        .map(|piece| {
            // SAFETY: all-zero is a valid header; the piece it points to outlives it.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    let interval = load.burst as f64 / load.packets_per_second * 1e9;
    let start = clock.now();
    let (mut sent, mut bursts) = (0u64, 0u64);
    loop {
        let due = start + (bursts as f64 * interval) as u64;
        if due - start > (load.seconds * 1e9) as u64 {
            break;
        }
        let mut now = clock.now();
        while now < due {
            now = clock.now();
        }
        if now - start > (load.seconds * 3e9) as u64 {
            break; // The kernel does not take this rate.
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            if frame.len() >= SEQUENCE + 8 {
                frame[STAMP..STAMP + 8].copy_from_slice(&now.to_ne_bytes());
                frame[SEQUENCE..SEQUENCE + 8].copy_from_slice(&(sent + index as u64).to_ne_bytes());
            }
        }
        // SAFETY: headers, pieces and frames live here.
        let count = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), load.burst as u32, 0) };
        sent += count.max(0) as u64;
        bursts += 1;
    }
    let seconds = (clock.now() - start) as f64 / 1e9;
    Ok(LoadResult { packets: sent, packets_per_second: sent as f64 / seconds })
}

/// Frames that arrived at b, by the interface's own counter.
pub fn arrived(net: &Net) -> Result<u64, String> {
    net.inside("b", || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.trim_start().starts_with("eth0:"));
        line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).ok_or_else(|| "no counter of eth0".into())
    })
}

/// One arrival: when it was sent (as it says), when it came (the kernel's stamp).
#[derive(Clone, Copy)]
pub struct Arrival {
    pub sent: u64,
    pub arrived: u64,
    pub bytes: usize,
}

/// Sends, and keeps every arrival at b; the sink reads its ring on the host's CPU.
pub fn send_and_receive(net: &Net, mtu: u32, load: &Load) -> Result<(LoadResult, Vec<Arrival>), String> {
    let mut sink = net.inside("b", || Ok(AfPacket::open("eth0", mtu, SINK_BYTES)?))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let reader = scope.spawn(move || {
            // Before the blaster, or the ring overflows; it sleeps nearly always.
            let _ = keep_to(&[HOST_CPU]).and_then(|()| set_realtime(2));
            let mut clock = Clock::new();
            let mut arrivals = Vec::with_capacity((load.packets_per_second * load.seconds * 1.1) as usize + 1000);
            loop {
                let finished = done.load(Relaxed);
                clock.refresh();
                let count = sink.receive(&clock, 4096, u64::MAX, &mut |frame, arrived| {
                    let word =
                        |at: usize| frame.get(at..at + 8).and_then(|b| Some(u64::from_ne_bytes(b.try_into().ok()?)));
                    arrivals.push(Arrival { sent: word(STAMP).unwrap_or(0), arrived, bytes: frame.len() });
                });
                if count == 0 && finished {
                    return arrivals;
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let sent = send(net, load);
        std::thread::sleep(std::time::Duration::from_millis(300));
        done.store(true, Relaxed);
        let arrivals = reader.join().map_err(|_| "the sink failed".to_string())?;
        Ok((sent?, arrivals))
    })
}
