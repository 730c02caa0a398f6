//! AddressSanitizer watches what it is meant to watch: each fault below, made in a process of its own, is reported.

use std::process::Command;

use super::arena::Arena;

/// Named by the environment: an access that must end the process.
const FAULT: &str = "EWAN_TEST_FAULT";

/// Run by `report` alone.
#[test]
#[ignore = "ends its process"]
fn fault() {
    let mut arena = Arena::new(64, 1514, 0).expect("memory");
    let slots = [60, 60, 1000].map(|bytes| arena.store(&vec![7; bytes]).expect("room"));
    let frame = |arena: &mut Arena, number: usize| arena.frame(slots[number]).as_ptr();
    let address = match std::env::var(FAULT).as_deref() {
        Ok("behind a small frame") => frame(&mut arena, 0).wrapping_add(60),
        Ok("behind a large frame") => frame(&mut arena, 2).wrapping_add(1000),
        Ok("before the next slot's head") => frame(&mut arena, 1).wrapping_sub(9),
        Ok("a released slot") => {
            let address = frame(&mut arena, 1);
            arena.release(slots[1]);
            address
        }
        Ok("behind an allocation") => vec![7u8; 100].leak().as_ptr().wrapping_add(100),
        Ok("none") => frame(&mut arena, 2).wrapping_add(999),
        other => panic!("{FAULT} is {other:?}"),
    };
    // SAFETY: there is memory at this address, mapped or allocated by this test; that it is none to be read is the test.
    println!("read {}", unsafe { address.read_volatile() });
}

/// What the process that makes this fault wrote, and whether it came to its end.
fn report(fault: &str) -> (String, bool) {
    let program = std::env::current_exe().expect("this test");
    let arguments = ["--exact", "sanitizer_tests::fault", "--ignored", "--nocapture"];
    let done = Command::new(program).args(arguments).env(FAULT, fault).output().expect("it runs");
    let said = [done.stdout, done.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    (said, done.status.success())
}

#[test]
fn what_must_not_be_read_is_reported() {
    for (fault, name) in [
        ("behind a small frame", "use-after-poison"),
        ("behind a large frame", "use-after-poison"),
        ("before the next slot's head", "use-after-poison"),
        ("a released slot", "use-after-poison"),
        ("behind an allocation", "heap-buffer-overflow"),
    ] {
        let (said, ended) = report(fault);
        assert!(said.contains(&format!("ERROR: AddressSanitizer: {name}")) && !ended, "{fault}: {said}");
    }
}

#[test]
fn what_may_be_read_is_not() {
    let (said, ended) = report("none");
    assert!(said.contains("read 7") && ended, "{said}");
}
