//! Hands a container's network namespace to the container whose spinner serves its link: an open descriptor over a Unix
//! socket in the lab's directory (SCM_RIGHTS, unix(7)).
//!
//! In: the socket's path, a link's name. Out: the namespaces of links, by name; or, at the other end, that the spinner
//! serves the link. Who comes first waits for the other.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ewan_system::{namespace, Context, Error, Result};
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};

const AGAIN: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_secs(5);
const SAY: Duration = Duration::from_secs(10);
const LONGEST_NAME: usize = 256;
const SERVED: &[u8] = b"served";

/// A namespace that came, and the connection on which its container waits.
pub struct Handover {
    pub namespace: OwnedFd,
    waiting: UnixStream,
}

impl Handover {
    /// Tells the container that its link is served.
    pub fn tell(mut self) {
        let _ = self.waiting.write_all(SERVED);
    }
}

/// The namespaces of all these links. `say`: told from time to time which are missing.
pub fn collect(socket: &Path, links: &[&str], say: impl Fn(&[&str])) -> Result<BTreeMap<String, Handover>> {
    let mut given = BTreeMap::new();
    if links.is_empty() {
        return Ok(given);
    }
    let path = || socket.display().to_string();
    let listener = ewan_system::socket::private_listener(socket).attempting(path)?;
    listener.set_nonblocking(true).attempting(path)?;
    let mut next = Instant::now() + SAY;
    while given.len() < links.len() {
        match listener.accept() {
            Ok((stream, _)) if !ewan_system::socket::is_trusted(&stream) => {}
            Ok((stream, _)) => {
                // One that says nothing, or no link of ours, comes again.
                if let Some((name, gift)) = receive(stream).filter(|(name, _)| links.contains(&name.as_str())) {
                    given.insert(name, gift);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(error) => return Err(Error::new(path(), error)),
        }
        if Instant::now() > next {
            let missing: Vec<_> = links.iter().copied().filter(|link| !given.contains_key(*link)).collect();
            say(&missing);
            next = Instant::now() + SAY;
        }
    }
    let _ = std::fs::remove_file(socket);
    Ok(given)
}

fn receive(stream: UnixStream) -> Option<(String, Handover)> {
    stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(ANSWER))).ok()?;
    let mut text = [0; LONGEST_NAME];
    let mut slices = [IoSliceMut::new(&mut text)];
    let mut space = nix::cmsg_space!(std::os::fd::RawFd);
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).ok()?;
    let length = message.bytes;
    let mut descriptors = Vec::new();
    for part in message.cmsgs().ok()? {
        if let ControlMessageOwned::ScmRights(raw) = part {
            // SAFETY: the kernel has just made these descriptors for us.
            descriptors.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
        }
    }
    let name = String::from_utf8(text[..length].to_vec()).ok()?;
    Some((name, Handover { namespace: descriptors.pop()?, waiting: stream }))
}

/// Gives this container's namespace for `link`, and waits until the link is served. `say`: told from time to time that
/// nobody has taken it yet.
pub fn give(socket: &Path, link: &str, say: impl Fn()) -> Result<()> {
    let namespace = namespace::own()?;
    let mut next = Instant::now() + SAY;
    loop {
        // Whoever listens may begin after us, and end before it has served: then once more.
        if let Ok(mut stream) = UnixStream::connect(socket) {
            let descriptors = [namespace.as_raw_fd()];
            let rights = [ControlMessage::ScmRights(&descriptors)];
            let name = [IoSlice::new(link.as_bytes())];
            let sent = sendmsg::<()>(stream.as_raw_fd(), &name, &rights, MsgFlags::MSG_NOSIGNAL, None);
            let mut answer = [0; SERVED.len()];
            if sent.is_ok() && stream.read_exact(&mut answer).is_ok() && answer == SERVED {
                return Ok(());
            }
        }
        if Instant::now() > next {
            say();
            next = Instant::now() + SAY;
        }
        std::thread::sleep(AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn whoever_comes_first_waits_and_the_namespace_arrives() {
        let path = std::env::temp_dir().join(format!("ewan-handover-{}", std::process::id()));
        let (early, late) = (path.clone(), path.clone());
        let first = std::thread::spawn(move || give(&early, "wan1", || {}));
        std::thread::sleep(2 * AGAIN);
        let taken = std::thread::spawn(move || collect(&late, &["wan1", "wan2"], |_| {}));
        std::thread::sleep(2 * AGAIN);
        // Nobody that the spinner serves: it is not counted, and its giver is left to try again.
        let mut stranger = UnixStream::connect(&path).expect("somebody listens");
        stranger.write_all(b"wan9").expect("it takes bytes");
        let second = {
            let path = path.clone();
            std::thread::spawn(move || give(&path, "wan2", || {}))
        };
        let given = taken.join().expect("no panic").expect("both came");
        assert_eq!(given.keys().collect::<Vec<_>>(), ["wan1", "wan2"]);
        let own = std::fs::metadata("/proc/self/ns/net").expect("a namespace").ino();
        for (_, gift) in given {
            let file = File::from(gift.namespace.try_clone().expect("a descriptor"));
            assert_eq!(file.metadata().expect("a file").ino(), own);
            gift.tell();
        }
        assert!(first.join().expect("no panic").is_ok() && second.join().expect("no panic").is_ok());
        assert!(!path.exists());
    }
}
