//! A spinner in a process of its own (this program once more), for one link. In: the link's direction; out: its
//! statistics, as its control socket tells them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ewan_datapath::client::{self, Client};
use ewan_datapath::{run, LinkConfig, SpinnerConfig};
use ewan_model::config::{Direction, Queue};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};

use crate::net::{Net, HOST_CPU, LINK_CPU};

/// Time for the link to answer.
const ANSWER: Duration = Duration::from_secs(5);

pub struct Link {
    child: Child,
    directory: PathBuf,
}

/// Wire framing, drop-tail, constant delay.
pub fn direction(rate_bps: u64, delay_ns: u64, limit_bytes: u64) -> Direction {
    Direction {
        store_packets: 1 << 17,
        store_bytes: 64 << 20,
        ..Direction::plain(rate_bps, Queue::drop_tail(None, Some(limit_bytes)), delay_ns)
    }
}

impl Link {
    pub fn start(net: &Net, mtu: u32, direction: &Direction) -> Result<Link, String> {
        let directory = std::env::temp_dir().join(format!("ewan-bench-{}/lab", std::process::id()));
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(["serve", &directory.join("spinner-0.sock").to_string_lossy(), &net.path("e").to_string_lossy()])
            .args([mtu.to_string(), serde_json::to_string(direction).map_err(|error| error.to_string())?])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting the link: {error}"))?;
        let link = Link { child, directory };
        let started = Instant::now();
        while !link.socket().exists() {
            if started.elapsed() > Duration::from_secs(5) {
                return Err("the link does not come up".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(50));
        Ok(link)
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("spinner-0.sock")
    }

    pub fn stats(&self) -> Result<Value, String> {
        self.ask(&json!({"command": "stats"}))
    }

    /// Whether it counts the flows of what goes forward.
    pub fn count_flows(&self, counts: bool) -> Result<(), String> {
        let flows = json!({"most": if counts { 64 } else { 0 }, "ports": []});
        self.ask(&json!({"command": "set", "link": "bench", "direction": "forward", "flows": flows})).map(drop)
    }

    fn ask(&self, request: &Value) -> Result<Value, String> {
        let ask = || Client::connect(&self.socket(), ANSWER)?.ask(request);
        ask().map_err(|error: client::Error| format!("asking the link: {error}"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The child has not been waited for, so the number is still its own.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
        if let Some(parent) = self.directory.parent() {
            let _ = std::fs::remove_dir_all(parent);
        }
    }
}

/// In the child: socket, namespace, MTU, direction.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let [socket, netns, mtu, direction] = arguments else { return Err("serve: four arguments".into()) };
    let direction: Direction = serde_json::from_str(direction).map_err(|error| error.to_string())?;
    let config = SpinnerConfig {
        cpu: LINK_CPU,
        control_cpus: vec![HOST_CPU],
        control_socket: socket.into(),
        always_spins: false,
        links: vec![LinkConfig {
            name: "bench".into(),
            netns: netns.into(),
            port_a: "p0".into(),
            port_b: "p1".into(),
            mtu: mtu.parse().map_err(|error| format!("{mtu}: {error}"))?,
            forward: direction.clone(),
            backward: direction,
            elsewhere_ns: [0; 2],
        }],
    };
    Ok(run(config)?)
}
