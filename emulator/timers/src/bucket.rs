//! How late a timer of the kernel's releases a packet: a token bucket of one packet holds back each of a train for the
//! time that its rate says, with a timer (net/sched/sch_tbf.c, qdisc_watchdog: an hrtimer), and the kernel stamps what
//! arrives. A packet that leaves late leaves no tokens behind, so each distance is one more than the packet's time at
//! the rate by its own lateness alone; that of the two stamps' ways to the receiver, below a microsecond, is in it too.
//!
//! In: intervals. Out: nanoseconds. The pair of ports lies between two network namespaces without names: nothing of
//! it is left, however this process ends. Needs root.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use ewan_system::netlink::{requests, Batch, Socket};
use ewan_system::socket::{self, require_option, PacketAddress};
use ewan_system::{namespace, Context};
use nix::sys::socket::{recvmsg, send, ControlMessageOwned, MsgFlags};
use nix::sys::time::TimeSpec;

use ewan_system::clock::gettime;

/// Adds a token bucket to the port with this number: rate in bit/s, burst and queue in bytes, as the kernel counts
/// them (with the Ethernet header).
pub type TokenBucket<'a> = &'a (dyn Fn(&mut Batch, u32, u64, u32, u32) + Sync);

/// With the Ethernet header; the bucket holds one.
const FRAME_BYTES: usize = 1000;
const BITS_NS: u64 = 8 * FRAME_BYTES as u64 * 1_000_000_000;
/// IEEE 802: for experiments.
const PROTOCOL: u16 = 0x88b5;
const MTU: u32 = 1500;
const MACS: [[u8; 6]; 2] = [[2, 0xe3, 0, 0, 0, 1], [2, 0xe3, 0, 0, 0, 2]];
/// Beyond the numbers of what a new namespace may have besides its loopback.
const INDEX: u32 = 4000;
const NAME: &str = "eth0";
/// How many packets wait in the bucket's queue at most: a few MB.
const LONGEST_TRAIN: u64 = 2048;
/// What a waiting packet takes of a socket's buffer.
const ROOM_BYTES: usize = 4096;
/// How long the kernel may take to start stamping packets after the first socket asked for it.
const STAMPS_START: Duration = Duration::from_millis(20);
const FIRST_TRAIN: u64 = 32;
/// Packets that give one distance that no sender had a part in.
const SHORTEST_TRAIN: u64 = 3;
/// After the last packet is due.
const PATIENCE: Duration = Duration::from_millis(1);

/// A pair of ports, the first with a token bucket.
pub struct Pair {
    netlink: Socket,
    sender: OwnedFd,
    receiver: OwnedFd,
}

impl Pair {
    /// Made by a thread that stays in the sender's namespace.
    pub fn open() -> Result<Pair, String> {
        let far = quiet_namespace()?;
        let receiving = Socket::open().map_err(|error| error.to_string())?;
        let near = quiet_namespace()?;
        let sending = Socket::open().map_err(|error| error.to_string())?;
        let port = |end: usize| requests::Port { name: NAME, index: INDEX, mac: MACS[end], mtu: MTU };
        let mut batch = Batch::default();
        requests::veth(&mut batch, &port(0), &port(1), far.as_raw_fd(), "a pair of ports".into());
        requests::up(&mut batch, INDEX, "a port up".into());
        sending.run(batch).map_err(|error| error.to_string())?;
        let mut batch = Batch::default();
        requests::up(&mut batch, INDEX, "a port up".into());
        receiving.run(batch).map_err(|error| error.to_string())?;
        let room = (LONGEST_TRAIN as usize * ROOM_BYTES) as i32;
        let sender = packets(0)?;
        require_option(&sender, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &room, "SO_SNDBUFFORCE")?;
        let receiver = namespace_of(&far, &near, || packets(PROTOCOL))?;
        require_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room, "SO_RCVBUFFORCE")?;
        require_option(&receiver, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, "SO_TIMESTAMPNS")?;
        std::thread::sleep(STAMPS_START);
        Ok(Pair { netlink: sending, sender, receiver })
    }

    /// Trains of packets with one each `interval_ns`, for about `duration_ns`: how late each left.
    pub fn lateness(&self, interval_ns: u64, duration_ns: u64, bucket: TokenBucket) -> Result<Vec<u64>, String> {
        let mut batch = Batch::replacing();
        let limit = FRAME_BYTES as u32 * (LONGEST_TRAIN as u32 + 1);
        bucket(&mut batch, INDEX, BITS_NS / interval_ns, FRAME_BYTES as u32, limit);
        self.netlink.run(batch).map_err(|error| error.to_string())?;
        let begun = gettime(libc::CLOCK_MONOTONIC);
        let mut late = Vec::with_capacity((duration_ns / interval_ns) as usize);
        // What is late takes time too: the first train tells how much.
        let (mut train, mut spent) = (FIRST_TRAIN.min(duration_ns / interval_ns), 0);
        while late.is_empty() || train >= SHORTEST_TRAIN {
            train = train.clamp(SHORTEST_TRAIN, LONGEST_TRAIN);
            late.extend(self.train(train, interval_ns)?);
            let elapsed = gettime(libc::CLOCK_MONOTONIC) - begun;
            let pace = (elapsed - spent).div_ceil(train);
            if late.is_empty() && elapsed > duration_ns {
                break;
            }
            spent = elapsed;
            train = duration_ns.saturating_sub(spent) / pace.max(1);
        }
        Ok(late)
    }

    fn train(&self, packets: u64, interval_ns: u64) -> Result<Vec<u64>, String> {
        let mut frame = vec![0u8; FRAME_BYTES];
        frame[..6].copy_from_slice(&MACS[1]);
        frame[6..12].copy_from_slice(&MACS[0]);
        frame[12..14].copy_from_slice(&PROTOCOL.to_be_bytes());
        for _ in 0..packets {
            send(self.sender.as_raw_fd(), &frame, MsgFlags::empty()).attempting(|| "sending to the token bucket")?;
        }
        // A sender that hands over a packet also lets go those that are due, without any timer.
        let all_sent = gettime(libc::CLOCK_REALTIME);
        let mut stamps = Vec::with_capacity(packets as usize);
        // Looked at when all should be there, not as they come: this CPU is to be as idle as it is without us.
        loop {
            let before = stamps.len() as u64;
            std::thread::sleep(Duration::from_nanos((packets - before) * interval_ns) + PATIENCE);
            while let Some(stamp) = self.receive()? {
                stamps.push(stamp);
            }
            if stamps.len() as u64 == packets || stamps.len() as u64 == before {
                break;
            }
        }
        let by_timer = stamps.partition_point(|stamp| *stamp <= all_sent);
        let spaces = stamps[by_timer..].windows(2);
        Ok(spaces.map(|two| two[1].saturating_sub(two[0]).saturating_sub(interval_ns)).collect())
    }

    /// The kernel's stamp (CLOCK_REALTIME) of the next packet; none when there is none.
    fn receive(&self) -> Result<Option<u64>, String> {
        let (mut byte, mut control) = ([0u8; 1], nix::cmsg_space!(TimeSpec));
        let mut slices = [IoSliceMut::new(&mut byte)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<()>(self.receiver.as_raw_fd(), &mut slices, Some(&mut control), flags) {
            Err(nix::errno::Errno::EAGAIN) => return Ok(None),
            received => received.attempting(|| "receiving from the token bucket")?,
        };
        let mut told = message.cmsgs().attempting(|| "a packet's stamp")?;
        let stamp = told.find_map(|each| match each {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        let time = stamp.ok_or("the kernel stamps no packets")?;
        Ok(Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64))
    }
}

/// Where nothing is sent but what we send; the calling thread is in it afterwards.
fn quiet_namespace() -> Result<std::fs::File, String> {
    let made = namespace::anonymous()?;
    // Without IPv6 there is nothing to switch off.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    Ok(made)
}

/// Runs `action` in one namespace and comes back to the other.
fn namespace_of<T>(there: impl AsFd, back: impl AsFd, action: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    namespace::enter(there)?;
    let done = action();
    namespace::enter(back)?;
    done
}

/// A packet socket on the port of the calling thread's namespace.
fn packets(protocol: u16) -> Result<OwnedFd, String> {
    let socket = socket::packet().attempting(|| "packet socket")?;
    let address = PacketAddress::new(socket::interface_index(NAME)?, protocol);
    socket::bind(&socket, &address).attempting(|| "packet socket")?;
    Ok(socket)
}
