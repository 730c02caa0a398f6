//! Ports at which something listens in a process's network namespace.
//!
//! In: a process and a port. Out: whether a socket of TCP listens there, or one of UDP is bound without a peer; from the
//! tables of proc(5).

/// The states of a socket of TCP that listens, and of one of UDP without a peer.
const LISTENS: &str = "0A";
const UNCONNECTED: &str = "07";

/// False too where the process has ended.
pub fn listens(process: i32, port: u16) -> bool {
    [("tcp", LISTENS), ("tcp6", LISTENS), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)].into_iter().any(
        |(table, state)| {
            std::fs::read_to_string(format!("/proc/{process}/net/{table}")).is_ok_and(|text| has(&text, port, state))
        },
    )
}

fn has(table: &str, port: u16, state: &str) -> bool {
    let port = format!("{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let local = words.next().and_then(|address| address.rsplit(':').next());
        local == Some(&port) && words.nth(1) == Some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_port_listens_while_a_socket_is_open() {
        let own = std::process::id() as i32;
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = tcp.local_addr().expect("its address");
        assert!(listens(own, address.port()));
        let client = TcpStream::connect(address).expect("it listens");
        let connected = client.local_addr().expect("its address").port();
        assert!(!listens(own, connected), "a connection does not listen");
        drop(tcp);
        assert!(!listens(own, address.port()));
        let udp = UdpSocket::bind("[::1]:0").expect("a socket");
        assert!(listens(own, udp.local_addr().expect("its address").port()));
        assert!(!listens(i32::MAX, address.port()));
    }
}
