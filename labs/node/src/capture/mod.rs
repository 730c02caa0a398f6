//! `ewan-node capture`: the packets at interfaces of the node that it runs in, into a pcapng file of bounded size.
//!
//! In: interfaces, how many bytes of each packet, how many of the file, perhaps from when until when. Out: the file,
//! whole when that time is over or a signal has asked for its end. What has no room in it is counted in its last blocks.
//! The kernel stamps packets (CLOCK_REALTIME): one that leaves when the driver gets it, behind the interface's queue, one
//! that comes in when it enters the stack. A VLAN tag that the kernel keeps beside a packet is not in the file.

mod pcapng;

use std::fs;
use std::io::{BufWriter, ErrorKind, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ewan_system::signals::{Signals, END};
use ewan_system::socket::{self, require_option, PacketAddress};
use ewan_system::{Context, Result};
use nix::errno::Errno;
use nix::sys::socket::{recvmsg, ControlMessageOwned, LinkAddr, MsgFlags};
use nix::sys::time::TimeSpec;
use zerocopy::{FromBytes, IntoBytes};

use crate::batch::T0;
use pcapng::{Counts, File, Packet};

const ETH_P_ALL: u16 = 3;
/// linux/if_packet.h
const PACKET_STATISTICS: i32 = 6;
/// What waits for a turn: at 10 Gbit/s of full packets, 25 MB in 20 ms.
const WAITING_BYTES: i32 = 64 << 20;
/// Between looks. Nothing is stamped here, so looking late costs room alone.
const TURN: Duration = Duration::from_millis(20);
/// Packets of one interface in a turn; more would keep a signal waiting.
const MOST_A_TURN: usize = 1 << 18;
/// Where a command may put files (batch/command.rs).
const OUT: &str = "EWAN_OUT";
/// What is stamped until the last moment has come to the socket by then.
const SETTLES_NS: u64 = 1_000_000;

#[derive(clap::Args)]
pub struct Request {
    /// An interface of this node; several times for several
    #[arg(long = "interface", required = true)]
    interfaces: Vec<String>,
    /// How many bytes of each packet are kept
    #[arg(long, default_value_t = 96, value_parser = clap::value_parser!(u32).range(14..=262_144))]
    snap_bytes: u32,
    /// The most that the file may have
    #[arg(long, default_value_t = 64_000_000)]
    most_bytes: u64,
    /// Packets that were stamped earlier after T0 are left out, and not counted
    #[arg(long)]
    from_ns: Option<u64>,
    /// It ends then, counted from T0
    #[arg(long)]
    until_ns: Option<u64>,
    /// The file; below $EWAN_OUT where that is set
    file: PathBuf,
}

impl Request {
    /// From when until when packets are kept, in ns since 1970.
    fn window(&self) -> std::result::Result<Range<u64>, String> {
        if self.from_ns.is_none() && self.until_ns.is_none() {
            return Ok(0..u64::MAX);
        }
        let t0: Option<u64> = std::env::var(T0).ok().and_then(|text| text.parse().ok());
        let t0 = t0.ok_or_else(|| format!("--from-ns and --until-ns need T0, in {T0}"))?;
        Ok(t0.saturating_add(self.from_ns.unwrap_or(0))..self.until_ns.map_or(u64::MAX, |ns| t0.saturating_add(ns)))
    }
}

/// struct tpacket_stats
#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct Statistics {
    packets: u32,
    drops: u32,
}

/// Until a signal says that it is enough.
pub fn run(request: &Request) -> std::result::Result<(), String> {
    let signals = Signals::block(&END)?;
    let window = request.window()?;
    let mut taps = request.interfaces.iter().map(|name| Tap::open(name)).collect::<Result<Vec<_>>>()?;
    let path = std::env::var_os(OUT).map_or_else(|| request.file.clone(), |out| Path::new(&out).join(&request.file));
    let say = |error: std::io::Error| format!("{}: {error}", path.display());
    let out = BufWriter::with_capacity(1 << 20, fs::File::create(&path).map_err(say)?);
    let mut file = File::begin(out, &request.interfaces, request.snap_bytes, request.most_bytes).map_err(say)?;
    let mut space = vec![0; request.snap_bytes as usize];
    loop {
        let left_ns = window.end.saturating_add(SETTLES_NS).saturating_sub(now_unix_ns());
        let asked = signals.wait(Some(TURN.min(Duration::from_nanos(left_ns)))).is_some();
        let ended = asked || now_unix_ns() >= window.end.saturating_add(SETTLES_NS);
        for (interface, tap) in taps.iter_mut().enumerate() {
            tap.take(&window, &mut space, |time_ns, bytes, length, packet_type| {
                file.packet(&Packet { interface, time_ns, bytes, length, flags: pcapng::flags(packet_type) })
            })
            .map_err(say)?;
        }
        if ended {
            break;
        }
    }
    let counts: Vec<Counts> = taps.iter().map(Tap::counts).collect();
    let last_ns = taps.iter().map(|tap| tap.last_ns).max().unwrap_or(0);
    file.end(last_ns, &counts).map_err(say).map(drop)
}

/// The clock that stamps packets.
fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The packets of one interface.
struct Tap {
    socket: OwnedFd,
    taken: u64,
    written: u64,
    /// Of the last packet, since 1970.
    last_ns: u64,
}

impl Tap {
    fn open(interface: &str) -> Result<Tap> {
        let say = |what: &str| format!("capturing at {interface}: {what}");
        let index = socket::interface_index(interface)?;
        let socket = socket::packet().attempting(|| say("socket"))?;
        require_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, &say("timestamps"))?;
        require_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &WAITING_BYTES, &say("SO_RCVBUFFORCE"))?;
        socket::bind(&socket, &PacketAddress::new(index, ETH_P_ALL)).attempting(|| say("bind"))?;
        Ok(Tap { socket, taken: 0, written: 0, last_ns: 0 })
    }

    /// Hands over what waits of the time in `window`: time (ns since 1970), the first bytes, the whole length, the
    /// packet's type. `each` says whether it was written.
    fn take(
        &mut self,
        window: &Range<u64>,
        space: &mut [u8],
        mut each: impl FnMut(u64, &[u8], u32, u8) -> std::io::Result<bool>,
    ) -> std::io::Result<()> {
        let mut control = nix::cmsg_space!(TimeSpec);
        for _ in 0..MOST_A_TURN {
            let mut pieces = [IoSliceMut::new(space)];
            // With MSG_TRUNC it gives the whole length.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let came = match recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut pieces, Some(&mut control), flags) {
                Ok(came) => came,
                Err(Errno::EAGAIN) => return Ok(()),
                // Told once when the interface has gone down; it may come back.
                Err(Errno::ENETDOWN | Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let stamp = came.cmsgs()?.find_map(|each| match each {
                ControlMessageOwned::ScmTimestampns(time) => Some(time),
                _ => None,
            });
            let stamp = stamp.ok_or_else(|| std::io::Error::new(ErrorKind::InvalidData, "a packet has no time"))?;
            let packet_type = came.address.map_or(u8::MAX, |address| address.pkttype());
            let length = came.bytes;
            let time_ns = stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64;
            if !window.contains(&time_ns) {
                continue;
            }
            self.last_ns = time_ns;
            self.taken += 1;
            let kept = length.min(space.len());
            self.written += u64::from(each(self.last_ns, &space[..kept], length as u32, packet_type)?);
        }
        Ok(())
    }

    /// To be asked once: reading clears the kernel's count.
    fn counts(&self) -> Counts {
        let told = socket::get_option::<Statistics>(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS);
        let dropped = told.map_or(0, |told| u64::from(told.drops));
        Counts { seen: self.taken + dropped, dropped, written: self.written }
    }
}
