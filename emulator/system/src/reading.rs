//! Files that a command is given, read within limits: a FIFO would be waited for, and a device read for ever.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Of a plan, a program, a request, a manifest: what the compiler refuses to write more of.
pub const MOST_BYTES: u64 = 256 << 20;
/// Of an error: values that are shown in it may be as long as a file.
const MOST_SHOWN: usize = 1000;

/// The name by which whoever starts a command gives it a document through a pipe.
const STANDARD_INPUT: &str = "/dev/stdin";

/// What a regular file of at most `MOST_BYTES` holds, or standard input, whatever that is.
pub fn regular(path: &Path) -> std::io::Result<Vec<u8>> {
    if path == Path::new(STANDARD_INPUT) {
        return bounded(std::io::stdin().lock());
    }
    // Looked at before it is opened, since opening alone can block or act on a device; and again in case it changed.
    check(&std::fs::metadata(path)?)?;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    check(&file.metadata()?)?;
    bounded(file)
}

fn bounded(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    Ok(content)
}

fn check(found: &std::fs::Metadata) -> std::io::Result<()> {
    if !found.is_file() {
        return Err(std::io::Error::other("is not a regular file"));
    }
    if found.len() > MOST_BYTES {
        return Err(too_large());
    }
    Ok(())
}

fn too_large() -> std::io::Error {
    std::io::Error::other(format!("is larger than {} MiB, the most that is read", MOST_BYTES >> 20))
}

/// An error as one line that a terminal shows as it is; of a long one the beginning and the end.
pub fn one_line(error: &str) -> String {
    // What a terminal cannot show is what Rust escapes by its number.
    let unseen = |letter: char| letter.is_control() || letter.escape_debug().len() > 2;
    let plain = |letter: char| if unseen(letter) { ' ' } else { letter };
    let letters: Vec<char> = error.trim_end().chars().map(plain).collect();
    if letters.len() <= MOST_SHOWN {
        return letters.into_iter().collect();
    }
    let (begin, end) = (&letters[..MOST_SHOWN * 2 / 3], &letters[letters.len() - MOST_SHOWN / 3..]);
    begin.iter().chain(&[' ', '…', ' ']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_a_directory_and_a_fifo_are_refused_at_once() {
        let fifo = std::env::temp_dir().join(format!("ewan-reading-{}", std::process::id()));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO can be made");
        for path in [Path::new("/dev/zero"), Path::new("/"), &fifo] {
            let error = regular(path).expect_err("no regular file");
            assert_eq!(error.to_string(), "is not a regular file", "{}", path.display());
        }
        std::fs::remove_file(&fifo).expect("it was there");
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_by_its_size() {
        let path = std::env::temp_dir().join(format!("ewan-reading-large-{}", std::process::id()));
        File::create(&path).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a file with a hole");
        let error = regular(&path).expect_err("too large");
        std::fs::remove_file(&path).expect("it was there");
        assert_eq!(error.to_string(), "is larger than 256 MiB, the most that is read");
    }

    #[test]
    fn an_error_is_one_line_of_bounded_length() {
        assert_eq!(one_line("a.json: unknown field `a\nb\u{1b}`\n"), "a.json: unknown field `a b `");
        assert_eq!(one_line("\u{e000}\u{202e} \"é\" '日' \\"), "   \"é\" '日' \\");
        let long = one_line(&format!("a.json: {}: write less", "x".repeat(100_000)));
        assert!(long.chars().count() < 1010, "{}", long.len());
        assert!(long.starts_with("a.json: xxx") && long.ends_with("xxx: write less"), "{long}");
    }
}
