//! What a fault in the program ends: a panic in the spinner's work for a link ends that link, one in a conversation on
//! the control socket ends that conversation, any other one ends the process. Also faults on demand, for tests.

use std::any::Any;
use std::cell::Cell;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// For the first line of `main`: a panic ends the process at once, except in threads that contain their own.
pub fn end_process_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        if !CONTAINED.get() {
            std::process::abort();
        }
    }));
}

/// A panic in the calling thread unwinds from here on; whoever called catches it.
pub fn contain() {
    CONTAINED.set(true);
}

/// A panic's message, in one line.
pub fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words");
    text.lines().collect::<Vec<_>>().join(" ")
}

/// What a link is to do with its first frame; none in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Panic,
    Hang,
}

/// EWAN_FAULT_LINK=NAME:panic or NAME:hang, of that link.
pub fn wanted(link: &str) -> Option<Fault> {
    let text = std::env::var("EWAN_FAULT_LINK").ok()?;
    match text.split_once(':').filter(|(name, _)| *name == link)?.1 {
        "panic" => Some(Fault::Panic),
        "hang" => Some(Fault::Hang),
        _ => None,
    }
}

impl Fault {
    #[cold]
    pub fn happen(self) {
        match self {
            Fault::Panic => panic!("EWAN_FAULT_LINK asked for this"),
            Fault::Hang => loop {
                std::hint::spin_loop();
            },
        }
    }
}
