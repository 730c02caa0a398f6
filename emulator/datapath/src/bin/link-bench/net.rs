//! The bench's own network: namespaces `ewan-bench-<pid>-{a,e,b}` with veth pairs as a lab has them. In: what is
//! wanted; out: a network that is gone when dropped. Uses ip(8) and tc(8); nothing here is timed.

use std::path::PathBuf;
use std::process::Command;

use ewan_system::{namespace, socket, Error};

pub struct Net {
    prefix: String,
}

/// Frames are sent on CPU 0 and received there; the link spins on CPU 1.
pub const HOST_CPU: u32 = 0;
pub const LINK_CPU: u32 = 1;

impl Net {
    /// a — b, without a link between them.
    pub fn plain(mtu: u32) -> Result<Net, String> {
        let net = Net::empty()?;
        net.wire("a", "eth0", "b", "eth0", mtu)?;
        net.finish(&[("a", "eth0"), ("b", "eth0")])?;
        Ok(net)
    }

    /// a — e — b; the link's ports are p0 and p1 in e.
    pub fn with_link(mtu: u32) -> Result<Net, String> {
        let net = Net::empty()?;
        net.wire("a", "eth0", "e", "p0", mtu)?;
        net.wire("b", "eth0", "e", "p1", mtu)?;
        net.finish(&[("a", "eth0"), ("b", "eth0"), ("e", "p0"), ("e", "p1")])?;
        Ok(net)
    }

    fn empty() -> Result<Net, String> {
        let net = Net { prefix: format!("ewan-bench-{}", std::process::id()) };
        for node in ["a", "e", "b"] {
            ip(&format!("netns add {}", net.name(node)))?;
            // No neighbour discovery among the frames that are counted.
            net.shell(node, "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")?;
        }
        Ok(net)
    }

    fn wire(&self, node: &str, interface: &str, peer: &str, peer_interface: &str, mtu: u32) -> Result<(), String> {
        let (node, peer) = (self.name(node), self.name(peer));
        ip(&format!(
            "-n {node} link add {interface} mtu {mtu} type veth peer name {peer_interface} mtu {mtu} netns {peer}"
        ))
    }

    fn finish(&self, interfaces: &[(&str, &str)]) -> Result<(), String> {
        for (node, interface) in interfaces {
            self.inside(node, || switch_offloads_off(interface))?;
            ip(&format!("-n {} link set {interface} up", self.name(node)))?;
        }
        for node in ["a", "b"] {
            let cpus = if std::env::var_os("EWAN_BENCH_NO_RPS").is_some() { 0 } else { 1 << HOST_CPU };
            self.shell(node, &format!("echo {cpus} > /sys/class/net/eth0/queues/rx-0/rps_cpus"))?;
        }
        Ok(())
    }

    pub fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    pub fn path(&self, node: &str) -> PathBuf {
        namespace::path(&self.name(node))
    }

    pub fn shell(&self, node: &str, command: &str) -> Result<(), String> {
        run(Command::new("ip").args(["netns", "exec", &self.name(node), "sh", "-c", command]), command)
    }

    /// Runs `work` on a thread that is inside the node; sockets opened there stay there.
    pub fn inside<T: Send>(&self, node: &str, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        let path = self.path(node);
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                namespace::enter_path(&path)?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err("a thread of the bench failed".into()))
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for node in ["a", "e", "b"] {
            let _ = Command::new("ip")
                .args(["netns", "del", &self.name(node)])
                .stderr(std::process::Stdio::null())
                .status();
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    run(Command::new("ip").args(arguments.split(' ')), &format!("ip {arguments}"))
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{what}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Checksums complete and one packet per frame, as a lab's interfaces have it.
fn switch_offloads_off(interface: &str) -> Result<(), String> {
    const SET_TX_CHECKSUM: u32 = 0x17;
    const SET_TSO: u32 = 0x1f;
    const SET_GSO: u32 = 0x24;
    const SET_GRO: u32 = 0x2c;
    let socket = socket::control()?;
    for command in [SET_TSO, SET_GSO, SET_GRO, SET_TX_CHECKSUM] {
        // SAFETY: these commands read a struct ethtool_value, two words.
        let switched = unsafe { socket::ethtool(&socket, interface, &mut [command, 0]) };
        switched.map_err(|error| Error::new(format!("switching offload {command:#x} of {interface} off"), error))?;
    }
    Ok(())
}
