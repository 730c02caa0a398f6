//! WireGuard's interfaces: keys, the other end, and whose packets come from there.
//!
//! In: an interface of the calling thread's namespace. Out: an interface that carries packets. Numbers are those of
//! linux/wireguard.h; the kernel's generic netlink has no other description of them.

use std::net::SocketAddr;

use crate::netlink::{self, Attributes, Batch, Socket};

pub const KEY_BYTES: usize = 32;

/// The one end of a tunnel and its only peer, to which everything is sent.
pub struct Device<'a> {
    pub interface: &'a str,
    pub private_key: [u8; KEY_BYTES],
    pub port: u16,
    /// The mark that outer packets have for rules of routing; 0: none.
    pub mark: u32,
    pub peer_key: [u8; KEY_BYTES],
    pub peer: SocketAddr,
}

const PUBLIC_KEY: u16 = 1;

/// Gives an interface its keys and its peer.
pub fn configure(device: &Device, what: String) -> netlink::Result<()> {
    const PRIVATE_KEY: u16 = 3;
    const LISTEN_PORT: u16 = 6;
    const MARK: u16 = 7;
    set(device.interface, what, |body| {
        body.bytes(PRIVATE_KEY, &device.private_key)
            .bytes(LISTEN_PORT, &device.port.to_ne_bytes())
            .u32(MARK, device.mark);
        body.nested(PEERS, &[], |peers| {
            peers.nested(0, &[], |peer| {
                const ENDPOINT: u16 = 4;
                const ALLOWED: u16 = 9;
                peer.bytes(PUBLIC_KEY, &device.peer_key).bytes(ENDPOINT, &socket_address(device.peer));
                peer.nested(ALLOWED, &[], |allowed| {
                    for (family, address) in [(libc::AF_INET, &[0u8; 4][..]), (libc::AF_INET6, &[0u8; 16][..])] {
                        allowed.nested(0, &[], |all| {
                            all.bytes(1, &(family as u16).to_ne_bytes()).bytes(2, address).bytes(3, &[0]);
                        });
                    }
                });
            });
        });
    })
}

const PEERS: u16 = 8;

/// From now on the interface sends an empty packet after so many seconds without another one, and the first at once,
/// before which comes a handshake; 0: none any more.
pub fn keep_alive(interface: &str, peer_key: &[u8; KEY_BYTES], seconds: u16, what: String) -> netlink::Result<()> {
    set(interface, what, |body| {
        body.nested(PEERS, &[], |peers| {
            peers.nested(0, &[], |peer| {
                const KEEPALIVE: u16 = 5;
                peer.bytes(PUBLIC_KEY, peer_key).bytes(KEEPALIVE, &seconds.to_ne_bytes());
            });
        });
    })
}

/// Changes the interface by these attributes.
fn set(interface: &str, what: String, fill: impl FnOnce(&mut Attributes)) -> netlink::Result<()> {
    const SET_DEVICE: u8 = 1;
    const VERSION: u8 = 1;
    const IFNAME: u16 = 2;
    let socket = Socket::open_generic()?;
    let family = socket.family("wireguard", "WireGuard (CONFIG_WIREGUARD)")?;
    let mut batch = Batch::default();
    batch.add(family, 0, &[SET_DEVICE, VERSION, 0, 0], what, |body| {
        body.text(IFNAME, interface);
        fill(body);
    });
    socket.run(batch)
}

/// struct sockaddr_in or sockaddr_in6.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut bytes = (family as u16).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend([0; 4]);
            bytes.extend(v6.ip().octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_size_and_order_of_the_kernels() {
        let v4 = socket_address("10.0.0.1:51821".parse().expect("v4"));
        assert_eq!((v4.len(), &v4[2..8]), (16, &[0xca, 0x6d, 10, 0, 0, 1][..]));
        let v6 = socket_address("[fd00::1]:51821".parse().expect("v6"));
        assert_eq!((v6.len(), v6[8], v6[23]), (28, 0xfd, 1));
    }
}
