//! The link that sleeps instead of spinning, on real packets between two namespaces. Needs root and iproute2's `ip`.
//! On a live machine it is as late as that machine wakes a thread, so these tests bound what it does, not how exactly.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ewan_system::{namespace, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};

const PACKETS: u32 = 50;

struct Bench {
    tag: String,
    socket: PathBuf,
    link: Option<Child>,
}

fn sh(line: &str) {
    let output = Command::new("sh").args(["-c", line]).output().expect("sh");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Bench {
    /// a — emulator — b at 100 Mbit/s on the wire and `delay_ns` each way; a is 192.0.2.1, b 192.0.2.2.
    fn new(delay_ns: u64) -> Self {
        let tag = format!("sleeping-{}", std::process::id());
        let socket = std::env::temp_dir().join(format!("{tag}.sock"));
        let mut bench = Self { tag, socket, link: None };
        let [a, e, b] = ["a", "e", "b"].map(|side| format!("{}-{side}", bench.tag));
        [&a, &e, &b].into_iter().for_each(|node| sh(&format!("ip netns add {node}")));
        for (node, port, number) in [(&a, "p0", 1), (&b, "p1", 2)] {
            sh(&format!("ip -n {node} link add eth0 type veth peer name {port} netns {e}"));
            sh(&format!("ip netns exec {node} ethtool -K eth0 tso off gso off gro off tx off"));
            sh(&format!("ip -n {node} address add 192.0.2.{number}/24 dev eth0"));
            sh(&format!("ip -n {node} link set eth0 up && ip -n {e} link set {port} up"));
        }
        let direction = json!({
            "framing": {"overhead_bytes": 38, "minimum_bytes": 84}, "rate_bps": 100_000_000, "loss": {"kind": "none"},
            "corrupt_ppb": 0, "duplicate_ppb": 0,
            "queue": {"limit_packets": 1000, "limit_bytes": null, "discipline": {"kind": "drop_tail"}},
            "delay": {"kind": "constant", "delay_ns": delay_ns}, "reorder": false, "seed": 1,
            "store_packets": 2000, "store_bytes": 3_000_000,
        });
        let link = Command::new(env!("CARGO_BIN_EXE_link-bench"))
            .args(["serve", &bench.socket.to_string_lossy(), &format!("/run/netns/{e}"), "1500"])
            .args([&direction.to_string(), "sleep"])
            .spawn();
        bench.link = Some(link.expect("link-bench"));
        let until = Instant::now() + Duration::from_secs(5);
        while !bench.socket.exists() {
            assert!(Instant::now() < until, "the link did not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
        bench
    }

    /// A socket of side a or b.
    fn udp(&self, side: &str, address: &str) -> UdpSocket {
        let path = PathBuf::from("/run/netns").join(format!("{}-{side}", self.tag));
        let open = || -> Result<UdpSocket> {
            namespace::enter_path(&path)?;
            UdpSocket::bind(address).attempting(|| "bind")
        };
        let opened = std::thread::scope(|scope| scope.spawn(open).join().expect("the thread"));
        opened.expect("a socket")
    }

    fn ask(&self, request: Value) -> Value {
        let mut stream = UnixStream::connect(&self.socket).expect("control socket");
        writeln!(stream, "{request}").expect("a request");
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("an answer");
        serde_json::from_str(&answer).expect("JSON")
    }

    /// How long the link's process has run on a CPU (proc_pid_stat(5)), in hundredths of a second.
    fn busy(&self) -> u64 {
        let id = self.link.as_ref().expect("it runs").id();
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut link) = self.link.take() {
            // It was not waited for, so the id is its own.
            let _ = kill(Pid::from_raw(link.id() as i32), Signal::SIGTERM);
            let _ = link.wait();
        }
        for side in ["a", "e", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{}-{side}", self.tag)]).status();
        }
    }
}

#[test]
fn it_delays_and_counts_every_packet_changes_when_told_and_does_not_spin() {
    let bench = Bench::new(20_000_000);
    let (a, b) = (bench.udp("a", "192.0.2.1:0"), bench.udp("b", "192.0.2.2:9"));
    b.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    let way = |times: u32| {
        let mut buffer = [0; 100];
        let mut shortest = Duration::MAX;
        for _ in 0..times {
            let sent = Instant::now();
            a.send_to(&[7; 60], "192.0.2.2:9").expect("sent");
            b.recv(&mut buffer).expect("it arrives");
            shortest = shortest.min(sent.elapsed());
        }
        shortest
    };
    way(1); // addresses are resolved
    let shortest = way(PACKETS);
    assert!(shortest >= Duration::from_millis(20), "{shortest:?}");
    assert!(shortest < Duration::from_millis(25), "{shortest:?}");
    // A packet a time: the counters are those of now, though the thread sleeps.
    let stats = bench.ask(json!({"command": "stats"}));
    let forward = &stats["links"]["bench"]["forward"];
    assert!(forward["out_packets"].as_u64() > Some(u64::from(PACKETS)), "{stats}");
    assert_eq!(forward["in_packets"], forward["out_packets"], "{stats}");

    let delay = json!({"kind": "constant", "delay_ns": 5_000_000});
    let set = json!({"command": "set", "link": "bench", "direction": "both", "delay": delay});
    assert_eq!(bench.ask(set)["ok"], true);
    std::thread::sleep(Duration::from_millis(50));
    let shortest = way(PACKETS);
    assert!(shortest >= Duration::from_millis(5) && shortest < Duration::from_millis(10), "{shortest:?}");

    // Nothing is on its way: a change is told all the same, and so is the time at which it was made.
    let rate = json!({"command": "set", "link": "bench", "direction": "forward", "rate_bps": 90_000_000});
    assert_eq!(bench.ask(rate)["ok"], true);
    std::thread::sleep(Duration::from_millis(100));
    let changes = bench.ask(json!({"command": "changes"}));
    assert_eq!(changes["changes"].as_array().map(Vec::len), Some(3), "{changes}");

    let before = bench.busy();
    std::thread::sleep(Duration::from_millis(500));
    assert!(bench.busy() - before < 10, "an idle link used {} of 50 ticks", bench.busy() - before);
}
