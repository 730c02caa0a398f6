//! One end of a tunnel, in a network namespace without a name: made as a lab makes it (emulator/lab/src/tunnels.rs), from the
//! host's namespace. Out: a socket inside, which hears the other end alone. All of it goes with the process, however that
//! ends.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ewan_system::namespace;
use ewan_system::netlink::requests::{self, Port, Vxlan};
use ewan_system::netlink::{Batch, Socket};
use ewan_system::socket::require_option;
use ewan_traffic::socket::{never_fragment, Namespaces};

use super::{Request, Role};
use ewan_lab::ethtool::Offloads;
use ewan_lab::fill;

const NAME: &str = "eth0";
/// Beyond the numbers of what a new namespace may have besides its loopback.
const INDEX: u32 = 4000;
/// Inside the tunnel, of both ends: nobody else is there.
const PORT: u16 = 7;
const PREFIX: u8 = 30;
/// What a waiting packet takes of a receive buffer beyond its bytes.
const OVERHEAD_BYTES: usize = 2048;
/// Of most networks' packets.
const USUAL_BYTES: usize = 1500;
const MOST_ROOM_BYTES: usize = 256 << 20;
/// Of the sending side: a full queue before the wire is to hold the sender back, not to lose packets.
const SENDING_BYTES: libc::c_int = 128 << 10;

/// A tunnel whose process was killed is there until the kernel has taken its namespace apart, some 30 ms later.
const OTHERS_END: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(20);

/// What the tunnel's ends have inside it; of RFC 2544's networks for measurements.
struct InnerAddress {
    address: IpAddr,
    mac: [u8; 6],
}

fn inside(role: Role) -> InnerAddress {
    let number = match role {
        Role::Measure => 1,
        Role::Answer => 2,
    };
    InnerAddress { address: Ipv4Addr::new(198, 18, 0, number).into(), mac: [2, 0xe5, 0, 0, 0, number] }
}

pub struct End {
    pub socket: UdpSocket,
    pub peer: SocketAddr,
    /// Of the namespace, which it keeps.
    netlink: Socket,
    /// Keeps the kernel stamping.
    _sockets: Namespaces,
}

impl End {
    /// Errors, one line: no rights, an address that is not this machine's, no way to the other, no VXLAN.
    pub fn open(request: &Request, role: Role) -> Result<Self, String> {
        let namespace = quiet_namespace()?;
        reachable(request)?;
        let (own, other) = match role {
            Role::Measure => (inside(Role::Measure), inside(Role::Answer)),
            Role::Answer => (inside(Role::Answer), inside(Role::Measure)),
        };
        vxlan(request, &own, &namespace)?;
        let sockets = Namespaces::open()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", namespace.as_raw_fd()));
        let netlink = sockets.within(&path, || furnish(&own, &other))?;
        let socket = sockets.udp_at(&path, SocketAddr::new(own.address, PORT), room_bytes(request))?;
        require_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SENDING_BYTES, "SO_SNDBUFFORCE")?;
        never_fragment(socket.as_fd(), false)?;
        let peer = SocketAddr::new(other.address, PORT);
        socket.connect(peer).map_err(|error| format!("connecting inside the tunnel: {error}"))?;
        Ok(Self { socket, peer, netlink, _sockets: sockets })
    }
}

/// At once, and not some time after the process: the next one may want the same.
impl Drop for End {
    fn drop(&mut self) {
        let mut batch = Batch::default();
        requests::remove(&mut batch, INDEX, "stretch: removing the tunnel".into());
        let _ = self.netlink.run(batch);
    }
}

/// Made by a thread of its own, so that this one stays in the host's.
fn quiet_namespace() -> Result<File, String> {
    let made = std::thread::spawn(|| {
        let made = namespace::anonymous();
        if made.is_ok() {
            fill::keep_quiet();
        }
        made
    });
    let made = made.join().map_err(|_| "making a network namespace: the thread ended")?;
    made.map_err(|error| match error.number() {
        Some(libc::EPERM) => format!("stretch: needs root: {error}"),
        _ => error.to_string(),
    })
}

/// Whether `local` is this machine's and there is a route from it to `remote`: the kernel makes tunnels without either.
fn reachable(request: &Request) -> Result<(), String> {
    let Request { local, remote, port, .. } = *request;
    let socket = UdpSocket::bind(SocketAddr::new(local, 0)).map_err(|error| match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => format!("stretch: local {local}: this machine has no such address"),
        _ => format!("stretch: local {local}: {error}"),
    })?;
    let routed = socket.connect(SocketAddr::new(remote, port));
    routed.map_err(|error| format!("stretch: no route from {local} to {remote}: {error}"))
}

fn vxlan(request: &Request, own: &InnerAddress, namespace: &File) -> Result<(), String> {
    let Request { vni, local, remote, port, mtu, .. } = *request;
    let what = format!("stretch: tunnel {vni} from {local} to {remote}, UDP port {port}");
    let end = Port { name: NAME, index: INDEX, mac: own.mac, mtu };
    let tunnel = Vxlan { vni, local, remote, port };
    patiently(&Socket::open()?, |batch| {
        requests::vxlan(batch, &end, Some(namespace.as_raw_fd()), &tunnel, what.clone())
    })
}

/// Makes what somebody else may just be leaving.
fn patiently(netlink: &Socket, ask: impl Fn(&mut Batch)) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let mut batch = Batch::default();
        ask(&mut batch);
        let Err(error) = netlink.run(batch) else { return Ok(()) };
        let taken = match error.number() {
            Some(libc::EEXIST) => "this machine has a tunnel of that number: take another vni",
            Some(libc::EADDRINUSE) => "another program of this machine has that UDP port: take another port",
            _ => return Err(error.to_string()),
        };
        if begun.elapsed() > OTHERS_END {
            return Err(format!("{error}: {taken}"));
        }
        std::thread::sleep(AGAIN);
    }
}

/// The calling thread is in the namespace.
fn furnish(own: &InnerAddress, other: &InnerAddress) -> Result<Socket, String> {
    let netlink = Socket::open()?;
    Offloads::of(&netlink, NAME, true).and_then(|known| known.off(&netlink, NAME))?;
    // The tunnel takes its port now.
    patiently(&netlink, |batch| requests::up(batch, INDEX, "stretch: bringing the tunnel up".into()))?;
    let mut batch = Batch::default();
    requests::address(&mut batch, INDEX, own.address, PREFIX, "stretch: the address inside the tunnel".into());
    requests::neighbour(&mut batch, INDEX, other.address, other.mac, "stretch: the other end's address".into());
    netlink.run(batch)?;
    Ok(netlink)
}

/// For a burst, of whatever size its packets will be, and for the timed packets.
fn room_bytes(request: &Request) -> usize {
    let payload = request.most_payload_bytes();
    let packets = request.burst_packets(payload).max(request.packets) as usize + 64;
    // Small packets take more than they have: of a burst of the usual ones, less than twice as much.
    let burst = 3 * request.rate_bytes as usize;
    packets.saturating_mul(payload.min(USUAL_BYTES) + OVERHEAD_BYTES).max(burst).min(MOST_ROOM_BYTES)
}
