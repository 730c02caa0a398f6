//! Services on this machine, with programs that every Linux has; no namespaces here.

use super::*;

fn node(services: &str) -> Node {
    let text = format!(
        r#"{{"name": "r1", "kind": "router", "interfaces": [], "routes": [], "learned_routes": [], "stack": null, "sysctls": {{}}, "services": [{services}]}}"#
    );
    serde_json::from_str(&text).expect("a node")
}

fn service(name: &str, kind: &str, script: &str, ready: Option<&str>) -> String {
    serde_json::json!({
        "name": name, "kind": kind, "argv": ["sh", "-c", script, "{run}"], "ready": ready,
        "files": {format!("{name}.conf"): "directory {run}\n"},
    })
    .to_string()
}

/// A directory of the test's own, gone at its end.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> TestDirectory {
        let path = std::env::temp_dir().join(format!("ewan-services-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        TestDirectory(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn services_start_in_their_order_each_when_the_one_before_is_ready() {
    let own = TestDirectory::new("order");
    let setup = service("first", "setup", "sleep 0.05; echo 1 > order; cat first.conf", None);
    let daemon =
        service("second", "daemon", "cat order; sleep 0.05; echo 2 >> order; : > up; exec sleep 60", Some("up"));
    let last = service("third", "setup", "cat order; echo $0", None);
    let before = monotonic_ns();
    let mut daemons = start(&node(&[setup, daemon, last].join(",")), &own.0).expect("all start");
    assert_eq!(own.read("first.log"), format!("directory {}\n", own.0.display()));
    assert_eq!(own.read("second.log"), "1\n");
    assert_eq!(own.read("third.log"), format!("1\n2\n{}\n", own.0.display()));
    let started: i64 = own.read("started").trim().parse().expect("a number");
    assert!(before <= started && started < monotonic_ns() - 50_000_000, "{before} {started}");
    let names: Vec<_> = daemons.iter().map(|daemon| daemon.name.as_str()).collect();
    assert_eq!(names, ["second"], "what comes to its end is not kept");
    let process = &mut daemons[0].process;
    assert!(process.try_wait().expect("a child").is_none());
    let own_process = nix::unistd::Pid::from_raw(process.id() as i32);
    assert_eq!(nix::unistd::getsid(Some(own_process)), Ok(own_process), "a session of its own");
    process.kill().and_then(|()| process.wait()).expect("it ends");
}

#[test]
fn a_daemon_holds_nothing_open_that_is_ours() {
    let own = TestDirectory::new("open");
    let file = File::create(own.0.join("lock")).expect("a file");
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).expect("inheritable");
    start(&node(&service("look", "setup", "ls -l /proc/$$/fd", None)), &own.0).expect("it ends well");
    let open = own.read("look.log");
    assert!(open.contains("look.log") && !open.contains("lock"), "{open}");
}

#[test]
fn a_failure_is_one_line_with_the_programs_last_words() {
    let own = TestDirectory::new("failure");
    let said = |services: &str| start(&node(services), &own.0).err().map(String::from).unwrap_or_default();
    let words = "echo reading; echo r1.conf: line 3: no such command; exit 1";
    assert_eq!(said(&service("a", "setup", words, None)), "node r1: service a: r1.conf: line 3: no such command");
    assert_eq!(
        said(&service("b", "daemon", words, Some("up"))),
        "node r1: service b: it ended: r1.conf: line 3: no such command"
    );
    assert_eq!(said(&service("c", "setup", "exit 7", None)), "node r1: service c: exit status: 7");
    // One that is ready at once, but ends while the next one starts.
    let short = [service("d", "daemon", "echo no more", None), service("e", "setup", "sleep 0.2", None)].join(",");
    assert_eq!(said(&short), "node r1: service d: it ended: no more");
}

#[test]
fn a_socket_is_ready_when_its_program_listens() {
    let directory = std::env::temp_dir().join(format!("ewan-ready-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("sock");
    assert!(!is_ready(&path), "nothing is there");
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Unix,
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::empty(),
        None,
    )
    .expect("a socket");
    let address = nix::sys::socket::UnixAddr::new(&path).expect("an address");
    nix::sys::socket::bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address).expect("bound");
    assert!(!is_ready(&path), "nobody listens yet");
    nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(1).expect("one")).expect("it listens");
    assert!(is_ready(&path));
    std::fs::write(directory.join("file"), "").expect("a file");
    assert!(is_ready(&directory.join("file")));
    std::fs::remove_dir_all(&directory).expect("ours");
}

#[test]
fn a_file_of_the_last_start_makes_no_daemon_ready() {
    let own = TestDirectory::new("stale");
    std::fs::write(own.0.join("up"), "").expect("a file");
    let refused = start(&node(&service("a", "daemon", "exit 3", Some("up"))), &own.0).err();
    assert_eq!(refused.map(String::from).unwrap_or_default(), "node r1: service a: it ended: exit status: 3");
}

#[test]
fn a_missing_program_is_told_with_its_package() {
    let own = TestDirectory::new("missing");
    let known = r#"{"name": "bgpd", "kind": "daemon", "argv": ["/nowhere/bgpd"], "files": {}, "ready": null}"#;
    let refused = start(&node(known), &own.0).err().map(String::from).unwrap_or_default();
    assert_eq!(
        refused,
        "node r1: service bgpd: there is no program /nowhere/bgpd here: install the package frr (apt-get install frr)"
    );
    let unknown = r#"{"name": "x", "kind": "setup", "argv": ["ewan-no-such"], "files": {}, "ready": null}"#;
    let refused = start(&node(unknown), &own.0).err().map(String::from).unwrap_or_default();
    assert!(refused.contains("there is no program ewan-no-such here: looked for in /usr/local/sbin, "), "{refused}");
}

#[test]
fn a_directory_too_long_for_sockets_is_refused_before_anything_is_written() {
    let long = std::env::temp_dir().join("x".repeat(LONGEST_RUN));
    let refused = start(&node(&service("a", "setup", "true", None)), &long).err().map(String::from).unwrap_or_default();
    assert!(refused.contains("bytes too long") && !refused.contains('\n'), "{refused}");
    assert!(!long.exists());
}
