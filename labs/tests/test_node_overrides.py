"""What a description says that nodes are made of, in the plan; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ewan.labs.compile import HostFacts, compile, frr_startup
from ewan.labs.node_overrides import Bind, PublishedPort
from ewan.labs.plan import Node, Plan, from_json, to_json
from ewan.labs.render import containerlab
from ewan.labs.runtime import node_overrides
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.container_engine import Image
from ewan.labs.spec import DescriptionError, parse


def planned(text: str, clock: str = "live", folder: Path = Path()) -> Plan:
    facts = HostFacts((0, 1), (), "virtual" if clock == "virtual" else "live")
    return compile(parse(text, folder / "node_overrides.lab.yaml"), facts)


def refused(text: str, clock: str = "live", folder: Path = Path()) -> str:
    with pytest.raises(DescriptionError) as error:
        planned(text, clock, folder)
    return str(error.value)


def test_a_plan_that_says_nothing_of_its_nodes_is_what_it_was() -> None:
    plan = planned("topology: star\nnodes: {host1: {}}\nkinds: {router: {}}")
    assert plan == planned("topology: star") and b'"own":' not in to_json(plan)
    assert from_json(to_json(plan)) == plan


def test_names_are_checked_and_near_ones_told() -> None:
    assert "hots1" in refused("topology: star\nnodes: {hots1: {}}") and '"host1"' in refused(
        "topology: star\nnodes: {hots1: {}}"
    )
    assert 'write "router"' in refused("topology: star\nkinds: {ruoter: {}}")
    assert 'unknown key of a node, write "image"' in refused("topology: star\nnodes: {host1: {imgae: x}}")
    twice = refused('topology: star\nnodes: {host1: {}, "host[1-2]": {}}')
    assert 'says of host1 what "host1" says too: write it once' in twice


def node(plan: Plan, name: str) -> Node:
    return next(node for node in plan.nodes if node.name == name)


def test_a_nodes_own_words_come_before_its_kinds_and_lists_add_up() -> None:
    plan = planned(
        "topology: star\n"
        "nodes: {host1: {image: my/app:1, env: {A: 1}, exec: [ip route]}}\n"
        "kinds: {host: {image: my/host:2, env: {A: 2, B: true}, exec: [uname -a]}}"
    )
    one, two = node(plan, "host1").own, node(plan, "host2").own
    assert one is not None and two is not None
    assert (one.image, one.env, one.exec) == ("my/app:1", {"A": "1", "B": "true"}, (("uname", "-a"), ("ip", "route")))
    assert (two.image, two.env) == ("my/host:2", {"A": "2", "B": "true"})
    assert from_json(to_json(plan)) == plan


def test_published_ports_are_on_loopback_unless_an_address_is_written_and_turn_management_on() -> None:
    plan = planned('topology: star\nnodes: {host1: {ports: ["8080:80", "0.0.0.0:53:53/udp", "[::1]:9090:90"]}}')
    said = node(plan, "host1").own
    assert said is not None and plan.containers.management
    assert said.ports == (
        PublishedPort("127.0.0.1", 8080, 80, "tcp"),
        PublishedPort("0.0.0.0", 53, 53, "udp"),
        PublishedPort("::1", 9090, 90, "tcp"),
    )
    assert node(plan, "host1").interfaces[0].name == "eth1"


def test_binds_are_relative_to_the_description_and_those_outside_are_named(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "www").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (project / "way-out").symlink_to(tmp_path / "other")
    text = "topology: star\nnodes: {host1: {binds: [www:/var/www:ro, ../other:/other, way-out:/link]}}"
    plan = planned(text, folder=project)
    said = node(plan, "host1").own
    other = str(tmp_path / "other")
    assert said is not None and said.binds == (
        Bind(str(project / "www"), "/var/www", True, False),
        Bind(other, "/other", False, True),
        Bind(other, "/link", False, True),
    )
    assert node_overrides.outside(plan) == [
        f"host1 sees {other} of this machine at {target}, and may be changed there" for target in ("/other", "/link")
    ]


def test_containerlab_gets_its_own_keys_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "www").mkdir()
    text = (
        "topology: star\nnodes:\n  host1:\n    image: my/app:1\n    cmd: serve '$HOME'\n    binds: [www:/www]\n"
        '    ports: ["8080:80"]\n    env: {COST: "$5 {{"}\n    exec: [ip route]\n'
    )
    plan = planned(text, folder=tmp_path)
    program = containerlab.ImageProgram(("serve", "$HOME"), "app", "/srv")
    alone = containerlab.render(plan, directory="own", version="1", binary="own/ewan-node")
    through = containerlab.render(
        plan, directory="own", version="1", wait=False, binary="/x/ewan-node", programs={"host1": program}
    )
    entry = "/usr/local/bin/ewan-node container --lab /lab --node host1"
    for file, binary, words in (
        (alone, "own/ewan-node", "--commands -- serve '$$HOME'"),
        (through, "/x/ewan-node", "--user=app --directory=/srv -- serve '$$HOME'"),
    ):
        found = yaml.safe_load(file)["topology"]["nodes"]["host1"]
        assert (found["image"], found["user"], found["ports"]) == ("my/app:1", "0", ["127.0.0.1:8080:80/tcp"])
        assert found["binds"] == [f"{binary}:/usr/local/bin/ewan-node:ro", f"{tmp_path / 'www'}:/www"]
        assert found["entrypoint"] == f"{entry} {words}"
        # containerlab takes the file for a template, and then expands variables in it.
        assert found["env"] == {"COST": "$$5 {{ `{{` }}"}
        assert "exec" not in found


@pytest.mark.parametrize(
    ("names", "asked", "called"),
    [
        (("localhost/my/app:1",), "my/app:1", "localhost/my/app:1"),
        (("localhost/app:latest",), "app", "localhost/app:latest"),
        (("docker.io/my/app:1", "localhost/my/app:1"), "my/app:1", ""),
        (("docker.io/library/app:1",), "app:1", ""),
        (("my/app:1",), "my/app:1", ""),
        (("localhost/my/app:1",), "localhost/my/app:1", ""),
    ],
)
def test_containerlab_is_told_podmans_name_of_an_image_that_was_made_here(
    names: tuple[str, ...], asked: str, called: str
) -> None:
    local = Image(names, {}).local_name(asked)
    assert local == called
    plan = planned(f"topology: star\nnodes: {{host1: {{image: {asked}}}}}")
    file = containerlab.render(
        plan,
        directory="own",
        version="1",
        binary="/x",
        programs={"host1": containerlab.ImageProgram(("serve",), image=local)},
    )
    assert yaml.safe_load(file)["topology"]["nodes"]["host1"]["image"] == (called or asked)


FILE = "topology: ring\nip: 4\nrouting: ospf\nnodes: {r1: {startup: STARTUP}}"


def test_a_configuration_is_added_to_ours_or_stands_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text("router bgp 65000\nip route 192.0.2.0/24 blackhole\n")

    def services(startup: str) -> dict[str, dict[str, str]]:
        plan = planned(FILE.replace("STARTUP", startup), folder=tmp_path)
        return {service.name: dict(service.files) for service in node(plan, "r1").services}

    ours = services("frr.conf")
    assert list(ours) == ["zebra", "ospfd", "bgpd", "staticd", "startup"]
    assert "area" in ours["ospfd"]["ospfd.conf"] and ours["startup"]["startup.conf"].startswith("router bgp")
    assert services("{file: frr.conf, mode: merge}") == ours
    theirs = services("{file: frr.conf, mode: replace}")
    assert list(theirs) == ["zebra", "bgpd", "staticd", "startup"]
    assert theirs["bgpd"]["bgpd.conf"] == "hostname r1\n"


def test_daemons_are_found_by_the_lines_of_a_configuration() -> None:
    assert frr_startup.spoken_of("! router bgp 1\nrouter ospf\n network 10.0.0.0/8 area 0\n") == ["ospfd"]
    assert frr_startup.spoken_of("router ospf6\ninterface eth0\n ipv6 ospf6 area 0\n") == ["ospf6d"]
    assert frr_startup.spoken_of("router rip\n ipv6 route ::/0 blackhole") == ["ripd", "staticd"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{image: My App}", 'write the name of an image, like "my/app:1"'),
        ("{binds: [www]}", 'write "SOURCE:TARGET" or "SOURCE:TARGET:ro"'),
        ("{binds: [nowhere:/x]}", "nowhere: No such file or directory: write a path relative to the description"),
        ("{binds: [.:/lab/x]}", "/lab/x: the node needs its own /lab: write another target"),
        ("{binds: [.:/a/../proc]}", 'write where the node sees it as a path from "/"'),
        ('{ports: ["80"]}', 'write "PORT:NODE_PORT" or "ADDRESS:PORT:NODE_PORT"'),
        ('{ports: ["0:80"]}', "write ports from 1 to 65535"),
        ('{ports: ["300.1.1.1:80:80"]}', "300.1.1.1 is no address"),
        ("{env: {2X: a}}", '"2X" is no variable'),
        ("{env: {EWAN_OUT: a}}", "names that begin with EWAN_ are ours"),
        ('{exec: ["sh -c \'x"]}', "no closing quotation: write a command"),
        ("{startup: no.conf}", "no.conf: No such file or directory"),
        ("{startup: {file: node_overrides.lab.yaml, mode: add}}", 'write "merge" or "replace"'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(said: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "node_overrides.lab.yaml").touch()
    line = refused(f"topology: star\nnodes:\n  host1: {said}", folder=tmp_path)
    assert words in line and "\n" not in line and "node_overrides.lab.yaml:3" in line


def test_what_a_node_cannot_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text("router ospf\n")
    host = refused(FILE.replace("r1", "host1").replace("STARTUP", "frr.conf"), folder=tmp_path)
    assert "host1 is a host: only routers run FRRouting" in host
    static = refused(FILE.replace("STARTUP", "frr.conf").replace("ospf", "static"), folder=tmp_path)
    assert "write routing: ospf, isis or bgp" in static
    virtual = refused("topology: star\nnodes: {host1: {image: my/app:1}}", "virtual")
    assert "a lab of the virtual clock has no containers: RUNTIME=containerlab" in virtual
    both = refused('topology: star\nkinds: {host: {ports: ["8080:80"]}}')
    assert "port 8080 is host1's already: write another one" in both
    everywhere = 'topology: star\nnodes: {host1: {ports: ["8080:80"]}, host2: {ports: ["OTHER:8080:80"]}}'
    assert "nodes.host2.ports: port 8080 is host1's" in refused(everywhere.replace("OTHER", "0.0.0.0"))
    for apart in ("127.0.0.2", "[::]"):
        assert planned(everywhere.replace("OTHER", apart))
    twice = refused("topology: star\nnodes: {host1: {binds: [frr.conf:/a, frr.conf:/b, frr.conf:/a]}}", folder=tmp_path)
    assert "nodes.host1.binds[2]" in twice and "/a is another bind's already: write another target" in twice
    with pytest.raises(LabError, match="host1: image: only a node that is a container has it: RUNTIME=containerlab"):
        node_overrides.check_namespaces(planned("topology: star\nnodes: {host1: {image: my/app:1}}"))
