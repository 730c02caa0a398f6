//! Who else spins on this CPU. Each spinner binds an abstract Unix socket named after its CPU and process, and the
//! kernel lists them all: whatever lab or state directory they belong to, and gone with the process however it
//! ends. Another one on the same CPU means that both give way when idle.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Our own entry; gone when dropped.
pub struct Registration {
    _socket: UnixDatagram,
    prefix: String,
    name: String,
}

impl Registration {
    pub fn new(cpu: u32) -> Result<Registration, String> {
        Registration::named(cpu, &std::process::id().to_string())
    }

    fn named(cpu: u32, owner: &str) -> Result<Registration, String> {
        let prefix = format!("ewan-spinner/{cpu}/");
        let name = format!("{prefix}{owner}");
        let socket = SocketAddr::from_abstract_name(&name).and_then(|address| UnixDatagram::bind_addr(&address));
        let socket = socket.map_err(|error| format!("registering as @{name}: {error}"))?;
        Ok(Registration { _socket: socket, prefix, name })
    }

    /// Does another spinner use this CPU?
    pub fn is_shared(&self) -> bool {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let mut names = sockets.lines().filter_map(|line| line.split_once('@').map(|(_, name)| name));
        names.any(|name| name.starts_with(&self.prefix) && name != self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_live_one_on_the_same_cpu_and_no_other() {
        // CPUs that no machine has, so that nobody else's spinner is seen here.
        let one = Registration::named(4_000_000, "one").unwrap();
        assert!(!one.is_shared());
        let other = Registration::named(4_000_001, "other").unwrap();
        assert!(!one.is_shared(), "another CPU");
        drop(other);
        let two = Registration::named(4_000_000, "two").unwrap();
        assert!(one.is_shared() && two.is_shared());
        drop(two);
        assert!(!one.is_shared(), "it went with its process");
    }
}
