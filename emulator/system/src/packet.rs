//! What packet sockets (packet(7)) are told and tell: options, structures and flags of linux/if_packet.h.

use zerocopy::{FromBytes, Immutable, IntoBytes};

pub const PACKET_RX_RING: i32 = 5;
pub const PACKET_STATISTICS: i32 = 6;
pub const PACKET_AUXDATA: i32 = 8;
pub const PACKET_VERSION: i32 = 10;
pub const PACKET_RESERVE: i32 = 12;
pub const PACKET_QDISC_BYPASS: i32 = 20;
pub const PACKET_IGNORE_OUTGOING: i32 = 23;
/// A value of `PACKET_VERSION`.
pub const TPACKET_V2: i32 = 1;
pub const TP_STATUS_USER: u32 = 1;
pub const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
pub const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
pub const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
/// Every protocol, in the byte order of this machine.
pub const ETH_P_ALL: u16 = libc::ETH_P_ALL as u16;

/// struct tpacket_req
#[repr(C)]
#[derive(IntoBytes, Immutable)]
pub struct RingRequest {
    pub block_size: u32,
    pub block_nr: u32,
    pub frame_size: u32,
    pub frame_nr: u32,
}

/// struct tpacket2_hdr
#[repr(C)]
#[derive(Clone, Copy, FromBytes)]
pub struct FrameHead {
    pub status: u32,
    pub len: u32,
    pub snaplen: u32,
    pub mac: u16,
    pub net: u16,
    pub sec: u32,
    pub nsec: u32,
    pub vlan_tci: u16,
    pub vlan_tpid: u16,
    padding: [u8; 4],
}

/// struct tpacket_stats
#[repr(C)]
#[derive(FromBytes, IntoBytes)]
pub struct Statistics {
    pub packets: u32,
    pub drops: u32,
}

/// struct tpacket_auxdata
#[repr(C)]
#[derive(FromBytes)]
pub struct AuxiliaryData {
    pub status: u32,
    pub len: u32,
    pub snaplen: u32,
    pub mac: u16,
    pub net: u16,
    pub vlan_tci: u16,
    pub vlan_tpid: u16,
}
