//! A server of one page over HTTP/1.1: GET and HEAD, a connection for each request.
//!
//! In: a listening socket and the page. Out: answers. A client can hold up nobody else: each has a thread of its own, a
//! time within which its request must be here and the answer taken, and gives way, the oldest first, when there are too
//! many.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::text::CONTENT_TYPE;

/// Connections at once; the next one takes the place of the oldest.
const MOST_CONNECTIONS: usize = 32;
/// A thread outlives its connection for a moment; the next connection waits when so many do.
const MOST_THREADS: usize = 2 * MOST_CONNECTIONS;
const THREAD_ENDS: Duration = Duration::from_secs(5);
const MOST_HEAD_BYTES: usize = 8 << 10;
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// For a body that nobody reads: closing before it was there would take the answer back.
const LINGER: Duration = Duration::from_millis(200);
const MOST_LINGER_BYTES: usize = 64 << 10;
const STACK_BYTES: usize = 256 << 10;

#[derive(Default)]
pub struct Server {
    clients: Mutex<Clients>,
    one_ended: Condvar,
    /// Connections that were ended to make room.
    pub refused: AtomicU64,
}

#[derive(Default)]
struct Clients {
    /// By number, the oldest first.
    open: Vec<(u64, TcpStream)>,
    threads: usize,
}

/// Listens; the error is one line. Port 0 takes any.
pub fn listen(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => format!("{address}: somebody listens there already: name another port with --listen"),
        ErrorKind::InvalidInput => format!("{address}: write an address with its port, such as 127.0.0.1:9324"),
        _ => format!("{address}: {error}: name another address with --listen"),
    })
}

impl Server {
    /// Answers for ever; `page` gives the metrics.
    pub fn serve(self: &Arc<Self>, listener: &TcpListener, page: impl Fn() -> Arc<str> + Send + Sync + 'static) {
        let page = Arc::new(page);
        let mut number = 0;
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Out of descriptors, perhaps: others may end meanwhile.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            number += 1;
            let Ok(handle) = stream.try_clone() else { continue };
            if !self.admit(number, handle) {
                continue;
            }
            let (server, page) = (self.clone(), page.clone());
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).name("client".into());
            let started = thread.spawn(move || {
                // A client that went away is no failure of ours.
                let _ = converse(stream, &*page);
                server.dismiss(number);
            });
            if started.is_err() {
                self.dismiss(number);
            }
        }
    }

    fn admit(&self, number: u64, handle: TcpStream) -> bool {
        let Ok(mut clients) = self.clients.lock() else { return false };
        if clients.open.len() >= MOST_CONNECTIONS {
            let (_, oldest) = clients.open.remove(0);
            let _ = oldest.shutdown(Shutdown::Both);
            self.refused.fetch_add(1, Relaxed);
        }
        // All but MOST_CONNECTIONS of them have lost their connection, so this is soon over.
        let waited = self.one_ended.wait_timeout_while(clients, THREAD_ENDS, |clients| clients.threads >= MOST_THREADS);
        let Ok((mut clients, waited)) = waited else { return false };
        if waited.timed_out() {
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        clients.threads += 1;
        clients.open.push((number, handle));
        true
    }

    fn dismiss(&self, number: u64) {
        if let Ok(mut clients) = self.clients.lock() {
            clients.open.retain(|(other, _)| *other != number);
            clients.threads -= 1;
        }
        self.one_ended.notify_one();
    }
}

fn converse(mut stream: TcpStream, page: &dyn Fn() -> Arc<str>) -> std::io::Result<()> {
    let head = read_head(&mut stream)?;
    let answer = answer(head.as_deref(), page);
    write_within(&mut stream, answer.as_bytes(), ANSWER_TAKEN_WITHIN)?;
    stream.shutdown(Shutdown::Write)?;
    linger(&mut stream)
}

/// All up to the empty line; none when it is too long. Errors: it was not here in time.
fn read_head(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let until = Instant::now() + REQUEST_WITHIN;
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        let count = stream_before(stream, until)?.read(&mut chunk)?;
        head.extend_from_slice(&chunk[..count]);
        if count == 0 || head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n") {
            return Ok(Some(head));
        }
        if head.len() > MOST_HEAD_BYTES {
            return Ok(None);
        }
    }
}

/// The stream, which then waits no longer than until that instant.
fn stream_before(stream: &mut TcpStream, until: Instant) -> std::io::Result<&mut TcpStream> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))?;
    Ok(stream)
}

fn write_within(stream: &mut TcpStream, mut bytes: &[u8], within: Duration) -> std::io::Result<()> {
    let until = Instant::now() + within;
    while !bytes.is_empty() {
        match stream_before(stream, until)?.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

fn linger(stream: &mut TcpStream) -> std::io::Result<()> {
    let until = Instant::now() + LINGER;
    let (mut chunk, mut taken) = ([0; 1024], 0);
    while taken < MOST_LINGER_BYTES {
        match stream_before(stream, until)?.read(&mut chunk)? {
            0 => break,
            count => taken += count,
        }
    }
    Ok(())
}

const WELCOME: &str = "ewan-node: the metrics of this lab's links are at /metrics\n";

/// The whole answer to a request's head; `page` is asked only if it is wanted.
fn answer(head: Option<&[u8]>, page: &dyn Fn() -> Arc<str>) -> String {
    let Some(head) = head else {
        return whole("431 Request Header Fields Too Large", "", "too long a request\n", true);
    };
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words: Vec<_> = line.trim_end().split(' ').collect();
    let [method, target, version] = words[..] else { return whole("400 Bad Request", "", "no HTTP request\n", true) };
    if !version.starts_with("HTTP/1.") || !(target.starts_with('/') || target == "*") {
        return whole("400 Bad Request", "", "no HTTP/1.1 request\n", true);
    }
    let with_body = method != "HEAD";
    let path = target.split('?').next().unwrap_or_default();
    if !matches!(path, "/" | "/metrics") {
        return whole("404 Not Found", "", "not here: the metrics are at /metrics\n", with_body);
    }
    if !matches!(method, "GET" | "HEAD") {
        return whole("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD\n", with_body);
    }
    if path == "/" {
        return whole("200 OK", "", WELCOME, with_body);
    }
    whole("200 OK", "", &page(), with_body)
}

fn whole(status: &str, header: &str, body: &str, with_body: bool) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n{header}Cache-Control: no-store\r\n\
         Connection: close\r\n\r\n{}",
        body.len(),
        if with_body { body } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> String {
        let answer = answer(Some(request.as_bytes()), &|| "ewan_up 1\n".into());
        answer.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ").to_owned()
    }

    #[test]
    fn requests_get_the_status_that_they_deserve() {
        for (request, wanted) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"),
            ("GET /metrics?name[]=x HTTP/1.0\r\n\r\n", "200 OK"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK"),
            ("GET / HTTP/1.1\r\n\r\n", "200 OK"),
            ("GET /metricsx HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /elsewhere HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("get /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/2\r\n\r\n", "400 Bad Request"),
            ("\u{16}\u{3}\u{1}", "400 Bad Request"),
            ("", "400 Bad Request"),
        ] {
            assert_eq!(status(request), wanted, "{request:?}");
        }
        assert!(answer(None, &|| "".into()).starts_with("HTTP/1.1 431 "));
        assert!(answer(Some(b"PUT / HTTP/1.1\r\n\r\n"), &|| "".into()).contains("\r\nAllow: GET, HEAD\r\n"));
    }

    #[test]
    fn a_head_says_the_length_and_has_no_body() {
        let (get, head) = ("GET /metrics HTTP/1.1\r\n\r\n", "HEAD /metrics HTTP/1.1\r\n\r\n");
        let [get, head] = [get, head].map(|request| answer(Some(request.as_bytes()), &|| "ewan_up 1\n".into()));
        assert!(head.ends_with("\r\n\r\n") && head.contains("\r\nContent-Length: 10\r\n"), "{head}");
        assert_eq!(get, format!("{head}ewan_up 1\n"));
    }

    fn started(page: &'static str) -> (std::net::SocketAddr, Arc<Server>) {
        let listener = listen("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let server = Arc::new(Server::default());
        let serving = server.clone();
        std::thread::spawn(move || serving.serve(&listener, move || page.into()));
        (address, server)
    }

    fn get(address: std::net::SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a request goes out");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        answer
    }

    #[test]
    fn clients_that_say_nothing_hold_nobody_up() {
        let (address, server) = started("ewan_up 1\n");
        let silent: Vec<_> = (0..3 * MOST_CONNECTIONS)
            .map(|_| TcpStream::connect(address).expect("every connection is taken"))
            .collect();
        for _ in 0..3 {
            assert!(get(address).ends_with("\r\n\r\newan_up 1\n"));
        }
        assert!(server.refused.load(Relaxed) > 0, "the oldest gave way");
        assert!(server.clients.lock().expect("no thread failed").open.len() <= MOST_CONNECTIONS);
        drop(silent);
    }

    #[test]
    fn a_client_that_takes_no_answer_holds_nobody_up() {
        // More than both sockets' buffers hold, so that the thread of that client waits in its write.
        let large: &'static str = Box::leak("# ".repeat(8 << 20).into_boxed_str());
        let (address, _) = started(large);
        let mut deaf = TcpStream::connect(address).expect("somebody listens");
        deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a request goes out");
        assert!(get(address).ends_with("# "));
    }

    #[test]
    fn an_answer_to_a_request_with_a_body_arrives() {
        let (address, _) = started("");
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        let request = format!("POST /metrics HTTP/1.1\r\nContent-Length: 30000\r\n\r\n{}", "x".repeat(30_000));
        stream.write_all(request.as_bytes()).expect("a request goes out");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    }

    #[test]
    fn a_taken_port_is_one_line() {
        let (address, _) = started("");
        let said = listen(&address.to_string()).expect_err("it is taken");
        assert_eq!(said, format!("{address}: somebody listens there already: name another port with --listen"));
        for wrong in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "192.0.2.1:1"] {
            let said = listen(wrong).expect_err(wrong);
            assert!(said.starts_with(wrong) && !said.contains('\n'), "{said}");
        }
    }

    mod properties {
        use proptest::collection::vec;
        use proptest::prelude::*;
        use proptest::sample::select;

        use super::*;

        const PAGE: &str = "ewan_up 1\n";

        /// Requests, nearly requests, and any bytes; some of them larger than a request may be.
        fn requests() -> impl Strategy<Value = Vec<u8>> {
            let method = select(vec!["GET", "HEAD", "POST", "get", "", " ", "\0", "GET\t"]);
            let target = select(vec!["/metrics", "/", "*", "/metrics?x=/", "metrics", "//", "", " ", "/\u{fc}"]);
            let version = select(vec!["HTTP/1.1", "HTTP/1.0", "HTTP/2", "http/1.1", "HTTP/1.", ""]);
            let space = || select(vec![" ", "  ", "\t", "", "\r"]);
            let end = || select(vec!["\r\n", "\n", "\r", "", "\n\r\n"]);
            let header = prop_oneof![
                "[ -~]{0,60}".prop_map(String::from),
                Just("Host: x".to_owned()),
                Just("Content-Length: 18446744073709551616".to_owned()),
                Just("Transfer-Encoding: chunked".to_owned()),
                (0..2 * MOST_HEAD_BYTES).prop_map(|length| format!("X: {}", "x".repeat(length))),
            ];
            let likely = (method, space(), target, space(), version, vec((end(), header), 0..4), end(), end())
                .prop_map(|(method, one, target, two, version, headers, last, empty)| {
                    let headers: String = headers.into_iter().map(|(end, header)| format!("{end}{header}")).collect();
                    format!("{method}{one}{target}{two}{version}{headers}{last}{empty}").into_bytes()
                });
            let damaged =
                (likely, vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)).prop_map(|(mut bytes, changes)| {
                    let length = bytes.len();
                    changes.iter().filter(|_| length > 0).for_each(|(at, byte)| bytes[at.index(length)] = *byte);
                    bytes
                });
            prop_oneof![3 => damaged, 1 => vec(any::<u8>(), 0..300)]
        }

        /// One whole answer: a status that is known, and as many bytes of the body as it says. Gives the status.
        fn status_of(answer: &[u8], is_head: bool) -> u16 {
            let answer = std::str::from_utf8(answer).expect("text");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
            let length: usize = length.parse().expect("a number");
            assert_eq!(body.len(), if is_head { 0 } else { length }, "{answer}");
            let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status");
            status.parse().expect("a number")
        }

        /// What RFC 9112 calls a request line of the two methods, for something that is here.
        fn is_served(request: &[u8]) -> bool {
            let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            let words: Vec<_> = line.trim_end().split(' ').collect();
            matches!(words[..], ["GET" | "HEAD", target, version]
                if ["/", "/metrics"].contains(&target.split('?').next().unwrap_or("")) && version.starts_with("HTTP/1."))
        }

        proptest! {
            #[test]
            fn any_head_gets_one_whole_answer(request in requests()) {
                let is_head = request.starts_with(b"HEAD ");
                let answer = answer(Some(&request), &|| PAGE.into());
                let status = status_of(answer.as_bytes(), is_head && !answer.starts_with("HTTP/1.1 400 "));
                prop_assert!([200, 400, 404, 405].contains(&status), "{}", status);
                prop_assert_eq!(status == 200, is_served(&request));
            }

            /// Over a connection, in pieces, ended or not.
            #[test]
            fn whatever_a_client_sends_it_gets_one_whole_answer(
                request in requests(), pieces in vec(1..4000usize, 1..4), ends in any::<bool>(),
            ) {
                let listener = listen("127.0.0.1:0").expect("a free port");
                let mut client = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it listens");
                let (served, _) = listener.accept().expect("a connection");
                let end = |end: &[u8]| request.windows(end.len()).position(|found| found == end).map(|at| at + end.len());
                let head_bytes = [end(b"\n\n"), end(b"\r\n\r\n")].into_iter().flatten().min();
                // A request that has no end is waited for.
                let ends = ends || head_bytes.is_none() && request.len() <= MOST_HEAD_BYTES;
                let answer = std::thread::scope(|scope| {
                    let serving = scope.spawn(move || converse(served, &|| PAGE.into()));
                    let mut rest = &request[..];
                    for piece in pieces.iter().cycle() {
                        let (now, later) = rest.split_at(rest.len().min(*piece));
                        // It may have answered and gone before it has all of what is too long.
                        if now.is_empty() || client.write_all(now).is_err() {
                            break;
                        }
                        rest = later;
                    }
                    if ends {
                        let _ = client.shutdown(Shutdown::Write);
                    }
                    client.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
                    let mut answer = Vec::new();
                    let read = client.read_to_end(&mut answer);
                    drop(client);
                    let _ = serving.join().expect("no panic");
                    read.map(|_| answer)
                });
                let answer = match answer {
                    // What comes behind a head is waited for, but not for long.
                    Err(error) => {
                        prop_assert!(request.len() > head_bytes.unwrap_or(MOST_HEAD_BYTES), "{}", error);
                        return Ok(());
                    }
                    Ok(answer) => answer,
                };
                let is_400 = answer.starts_with(b"HTTP/1.1 400 ") || answer.starts_with(b"HTTP/1.1 431 ");
                let status = status_of(&answer, request.starts_with(b"HEAD ") && !is_400);
                prop_assert!([200, 400, 404, 405, 431].contains(&status), "{}", status);
                prop_assert!(status != 431 || request.len() > MOST_HEAD_BYTES);
                prop_assert!(status != 200 || is_served(&request));
            }
        }
    }
}
