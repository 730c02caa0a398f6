//! Interfaces that are one VLAN of another one of their node: `eth0.10` sends and takes frames of VLAN 10 over `eth0`.
//!
//! In: a node of the plan whose other interfaces exist. Out: these too. They are the kernel's own (802.1Q) where it has
//! them. Else each is one end of a veth pair, and two programs stand for what the kernel lacks: one gives what `eth0.10`
//! sends a tag and hands it to `eth0`, one takes the tag from what comes to `eth0` and hands it to `eth0.10`. On the wire
//! both are the same; only a capture at `eth0.10` shows no packet that it sends there, and one at `eth0` shows all.

use std::os::fd::{AsRawFd, OwnedFd};

use ewan_system::bpf::{self, Helper, Instruction};
use ewan_system::fault;
use ewan_system::netlink::requests::{self, Port};
use ewan_system::netlink::{Batch, Error, Socket};

use crate::qdisc;
use ewan_plan::layout::{PlacedNode, PlacedPort};

/// The number of a VLAN's interface once it is there, by its name.
pub type Find<'a> = &'a dyn Fn(&PlacedPort) -> Result<u32, String>;

/// Makes the VLANs' interfaces of a node, after all others. `choose`: the kernel chooses their numbers.
pub fn make(socket: &Socket, placed: &PlacedNode, choose: bool, find: Find) -> Result<(), String> {
    for (order, port) in placed.ports.iter().enumerate() {
        let Some((parent, vlan)) = port.interface.parent() else { continue };
        fault::step();
        let parent = placed.ports.iter().find(|other| other.interface.name == parent);
        let parent = parent.expect("the layout has checked it").index;
        let what = format!("{}:{}: VLAN {vlan}", placed.node.name, port.interface.name);
        let index = if choose { 0 } else { port.index };
        let own = Port { name: &port.interface.name, index, mac: port.mac, mtu: port.interface.mtu };
        let mut batch = Batch::default();
        requests::vlan(&mut batch, &own, parent, vlan, what.clone());
        match socket.run(batch) {
            Err(Error::Lacking { .. }) => {
                let mut batch = Batch::default();
                requests::veth_alone(&mut batch, &own, &format!("tag-{}", own.name), what.clone());
                socket.run(batch)?;
                by_programs(socket, parent, find(port)?, vlan, order as u16 + 1, &what)?;
            }
            made => made?,
        }
    }
    Ok(())
}

/// The same in programs: `order` is another one for each VLAN of the node.
fn by_programs(socket: &Socket, parent: u32, index: u32, vlan: u16, order: u16, what: &str) -> Result<(), String> {
    let load = |program: &[Instruction]| -> Result<OwnedFd, String> {
        bpf::classifier(program).map_err(|error| format!("{what}: this kernel has no 802.1Q, and {error}"))
    };
    let (push, pop) = (load(&pushing(vlan, parent))?, load(&popping(vlan, index))?);
    for (index, to, program) in [(index, qdisc::Hook::Egress, &push), (parent, qdisc::Hook::Ingress, &pop)] {
        qdisc::classify(socket, index, to, order, program.as_raw_fd(), what)?;
    }
    Ok(())
}

/// Offsets in struct __sk_buff.
const VLAN_PRESENT: i16 = 20;
const VLAN_TCI: i16 = 24;
const ID: i32 = 0xfff;
/// TC_ACT_UNSPEC: the next filter decides.
const ANOTHER: i32 = -1;
/// BPF_F_INGRESS
const INGRESS: i32 = 1;

/// What an interface sends gets the tag, and leaves by `parent`.
fn pushing(vlan: u16, parent: u32) -> [Instruction; 7] {
    let protocol = (libc::ETH_P_8021Q as u16).to_be();
    [
        Instruction::set(2, i32::from(protocol)),
        Instruction::set(3, i32::from(vlan)),
        Instruction::call(Helper::PushVlan),
        Instruction::set(1, parent as i32),
        Instruction::set(2, 0),
        Instruction::call(Helper::Redirect),
        Instruction::end(),
    ]
}

/// What comes with the tag loses it, and has come to the interface `index`.
fn popping(vlan: u16, index: u32) -> [Instruction; 14] {
    [
        Instruction::copy(6, 1),
        Instruction::load(0, 6, VLAN_PRESENT),
        Instruction::skip_if(0, 0, 9),
        Instruction::load(0, 6, VLAN_TCI),
        Instruction::and(0, ID),
        Instruction::skip_unless(0, i32::from(vlan), 6),
        Instruction::copy(1, 6),
        Instruction::call(Helper::PopVlan),
        Instruction::set(1, index as i32),
        Instruction::set(2, INGRESS),
        Instruction::call(Helper::Redirect),
        Instruction::end(),
        Instruction::set(0, ANOTHER),
        Instruction::end(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_another_vlan_is_left_to_the_next_filter() {
        let program = popping(10, 7);
        // From where a jump stands, so many instructions further.
        for (at, jump) in [(2, Instruction::skip_if(0, 0, 9)), (5, Instruction::skip_unless(0, 10, 6))] {
            assert_eq!(program[at], jump);
        }
        assert_eq!(program[2 + 9 + 1..], [Instruction::set(0, ANOTHER), Instruction::end()]);
        assert_eq!(program[5 + 6 + 1..], [Instruction::set(0, ANOTHER), Instruction::end()]);
        assert_eq!(program[11], Instruction::end());
        assert_eq!(pushing(4094, 3)[1], Instruction::set(3, 4094));
    }
}
