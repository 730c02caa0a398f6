//! One packet socket whose packets are captured: stamped by the kernel, filtered by it, the outermost VLAN tag back in
//! its place.
//!
//! In: which interface of which network namespace, a filter. Out: packets with their times (CLOCK_REALTIME), and how
//! many there were.

use std::io::{ErrorKind, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use ewan_model::frame::{put_tag_back, ADDRESSES, TAG};
use ewan_system::namespace;
use ewan_system::packet::{
    AuxiliaryData, Statistics, ETH_P_ALL, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, PACKET_STATISTICS,
    TP_STATUS_VLAN_TPID_VALID, TP_STATUS_VLAN_VALID,
};
use ewan_system::socket::{self, require_option, FilterInstruction, PacketAddress};
use ewan_system::{Context, Result};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{recvmsg, ControlMessageOwned, LinkAddr, MsgFlags};
use nix::sys::time::TimeSpec;
use serde::Deserialize;
use zerocopy::FromBytes;

use super::pcapng::{self, Counts};

/// What waits for a turn: at 10 Gbit/s of full packets, 25 MB in 20 ms.
const WAITING_BYTES: i32 = 64 << 20;
/// Packets of one interface in a turn; more would keep a signal waiting.
const MOST_A_TURN: usize = 1 << 18;

/// Which packets at an interface are meant, and which way they are said to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TapDirection {
    /// Those that come in and those that go out, as the interface sees them.
    All,
    /// Those that come in.
    Entering,
    /// Those that come in, which the link that they come from sent: for it they go out.
    Leaving,
}

/// What the command line says of a tap, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Of the interface in the file; several taps may share it.
    pub name: String,
    /// The namespace's file; none: the one that this process is in.
    pub netns: Option<PathBuf>,
    pub interface: String,
    pub packets: TapDirection,
}

/// A packet as it came: `bytes` are the first ones, `length` is how many it has.
pub struct CapturedPacket<'a> {
    pub time_ns: u64,
    pub bytes: &'a [u8],
    pub length: u32,
    pub flags: u32,
}

/// The packets of one interface.
pub struct Tap {
    socket: OwnedFd,
    which: TapDirection,
    taken: u64,
}

impl Tap {
    /// Opens it where it is; the calling thread is in `home`, and is there again afterwards.
    pub fn open(place: &Place, filter: &[FilterInstruction], home: impl AsFd) -> Result<Tap> {
        match &place.netns {
            Some(path) => namespace::within(path, home, || Tap::open_here(place, filter)),
            None => Tap::open_here(place, filter),
        }
    }

    fn open_here(place: &Place, filter: &[FilterInstruction]) -> Result<Tap> {
        let say = |what: &str| format!("capturing at {}: {what}", place.interface);
        let index = socket::interface_index(&place.interface)?;
        let socket = socket::packet().attempting(|| say("socket"))?;
        require_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, &say("timestamps"))?;
        require_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &WAITING_BYTES, &say("SO_RCVBUFFORCE"))?;
        require_option(&socket, libc::SOL_PACKET, PACKET_AUXDATA, &1i32, &say("PACKET_AUXDATA"))?;
        if place.packets != TapDirection::All {
            require_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32, &say("PACKET_IGNORE_OUTGOING"))?;
        }
        // Before it is bound: no packet comes in that the filter has not seen.
        if !filter.is_empty() {
            socket::attach_filter(&socket, filter).attempting(|| say("filter"))?;
        }
        socket::bind(&socket, &PacketAddress::new(index, ETH_P_ALL)).attempting(|| say("bind"))?;
        Ok(Tap { socket, which: place.packets, taken: 0 })
    }

    /// Hands over what waits, of the time in `window`, until `each` has enough (false). `space`: as long as what is kept of
    /// a packet, and TAG more.
    pub fn take(
        &mut self,
        window: &Range<u64>,
        space: &mut [u8],
        mut each: impl FnMut(&CapturedPacket<'_>) -> bool,
    ) -> std::io::Result<()> {
        let mut control = cmsg_space!(TimeSpec, [u8; size_of::<AuxiliaryData>()]);
        for _ in 0..MOST_A_TURN {
            let mut pieces = [IoSliceMut::new(&mut space[TAG..])];
            // With MSG_TRUNC it gives the whole length.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let came = match recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut pieces, Some(&mut control), flags) {
                Ok(came) => came,
                Err(Errno::EAGAIN) => return Ok(()),
                // Told once when the interface has gone down; it may come back.
                Err(Errno::ENETDOWN | Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let (mut stamp, mut tag) = (None, None);
            for message in came.cmsgs()? {
                match message {
                    ControlMessageOwned::ScmTimestampns(time) => stamp = Some(time),
                    ControlMessageOwned::Unknown(other)
                        if other.cmsg_header.cmsg_level == libc::SOL_PACKET
                            && other.cmsg_header.cmsg_type == PACKET_AUXDATA =>
                    {
                        tag = tag_of(&other.data_bytes);
                    }
                    _ => {}
                }
            }
            let stamp = stamp.ok_or_else(|| std::io::Error::new(ErrorKind::InvalidData, "a packet has no time"))?;
            let time_ns = stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64;
            if !window.contains(&time_ns) {
                continue;
            }
            let packet_type = came.address.map_or(u8::MAX, |address| address.pkttype());
            let mut length = came.bytes;
            let most = space.len() - TAG;
            let bytes = match tag {
                Some((protocol, control)) if length >= ADDRESSES && most >= ADDRESSES => {
                    put_tag_back(space, protocol, control);
                    length += TAG;
                    &space[..length.min(most)]
                }
                _ => &space[TAG..TAG + length.min(most)],
            };
            self.taken += 1;
            let came = CapturedPacket {
                time_ns,
                bytes,
                length: length as u32,
                flags: if self.which == TapDirection::Leaving { pcapng::OUTBOUND } else { pcapng::flags(packet_type) },
            };
            if !each(&came) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Seen and dropped; to be asked once: reading clears the kernel's count.
    pub fn counts(&self) -> Counts {
        let told = socket::get_option::<Statistics>(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS);
        let dropped = told.map_or(0, |told| u64::from(told.drops));
        Counts { seen: self.taken + dropped, dropped, written: 0 }
    }
}

/// The VLAN tag that the kernel keeps beside a packet: its EtherType and its control information.
fn tag_of(auxiliary: &[u8]) -> Option<(u16, u16)> {
    let (told, _) = AuxiliaryData::read_from_prefix(auxiliary).ok()?;
    let protocol = if told.status & TP_STATUS_VLAN_TPID_VALID != 0 { told.vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    (told.status & TP_STATUS_VLAN_VALID != 0).then_some((protocol, told.vlan_tci))
}
