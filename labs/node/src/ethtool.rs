//! Offloads off: every packet on a lab's interface is one packet of at most the MTU. Where a program of ours carries
//! it, its checksum is complete too; within the kernel an unfinished one costs less and means the same.
//!
//! In: a socket of the interface's namespace and its name. Out: nothing, or what stayed on. One `ioctl` an
//! interface; the features' numbers differ between kernels, so they are looked up by name once
//! (linux/ethtool.h: ETHTOOL_GSTRINGS, ETHTOOL_GFEATURES, ETHTOOL_SFEATURES).

use std::os::fd::AsFd;

use ewan_system::socket::ethtool;

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const SET_OF_FEATURES: u32 = 4;
const NAME: usize = 32;

/// Which features to clear, as 32-bit blocks.
pub struct Offloads(Vec<u32>);

/// Segmentation left to a card, packets merged on receipt, and VLAN tags kept beside the packet.
fn beyond_one_packet(name: &str) -> bool {
    name.starts_with("tx-") && (name.ends_with("-segmentation") || name.starts_with("tx-gso-"))
        || name.starts_with("rx-gro")
        || name == "rx-lro"
        || name == "rx-udp-gro-forwarding"
        || name.starts_with("tx-vlan-") && name.ends_with("-insert")
}

/// Errors: the kernel's words.
fn ask(socket: impl AsFd, interface: &str, request: &mut [u32]) -> Result<i32, String> {
    // SAFETY: below, each request is as long as its own header says.
    unsafe { ethtool(socket, interface, request) }.map_err(|error| error.to_string())
}

impl Offloads {
    /// Looks the features up on one interface; all of a kernel's veths have the same.
    /// With `checksums`, these are not left to a card either, and then pages of a file are copied into packets.
    pub fn of(socket: impl AsFd, interface: &str, checksums: bool) -> Result<Self, String> {
        let mut info = [GSSET_INFO, 0, 1 << SET_OF_FEATURES, 0, 0];
        ask(&socket, interface, &mut info)?;
        let count = info[4] as usize;
        let mut names = vec![0u32; 3 + count * NAME / 4];
        names[..3].copy_from_slice(&[GSTRINGS, SET_OF_FEATURES, count as u32]);
        ask(&socket, interface, &mut names)?;
        let blocks = count.div_ceil(32);
        let mut features = vec![0u32; 2 + blocks * 4];
        features[..2].copy_from_slice(&[GFEATURES, blocks as u32]);
        ask(&socket, interface, &mut features)?;
        let mut clear = vec![0u32; blocks];
        for index in 0..count {
            let words = &names[3 + index * NAME / 4..][..NAME / 4];
            let bytes: Vec<u8> =
                words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
            let changeable = features[2 + index / 32 * 4] >> (index % 32) & 1 == 1;
            let name = String::from_utf8_lossy(&bytes);
            if changeable && (beyond_one_packet(&name) || checksums && name.starts_with("tx-checksum-")) {
                clear[index / 32] |= 1 << (index % 32);
            }
        }
        Ok(Offloads(clear))
    }

    pub fn off(&self, socket: impl AsFd, interface: &str) -> Result<(), String> {
        let mut request = vec![SFEATURES, self.0.len() as u32];
        request.extend(self.0.iter().flat_map(|valid| [*valid, 0]));
        match ask(&socket, interface, &mut request) {
            Ok(0) => Ok(()),
            Ok(_) => Err("some offloads stayed on".into()),
            Err(error) => Err(format!("switching offloads off: {error}")),
        }
    }
}
