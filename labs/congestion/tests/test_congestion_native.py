"""BPF programs of congestion control as modules of a kernel: what is refused, and what compiles."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from ewan.labs.base.product import ROOT
from ewan.labs.congestion import native, source
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime.kernel import kernel

OURS = sorted((ROOT / "emulator/kernel/tcp/bpf").glob("*.bpf.c"))
EXPORTS = frozenset({"tcp_slow_start", "tcp_reno_undo_cwnd"})
PROGRAM = """\
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

extern unsigned long CONFIG_HZ __kconfig;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
#define HZ CONFIG_HZ
#define clamp(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

struct mine {
	__u32 last;
	__u32 begin;
};

static struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __u64 div64_u64(__u64 number, __u64 by)
{
	return number / by;
}

SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
	struct mine *ca = (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;

	ca->begin = bpf_jiffies64() / HZ;
	bpf_printk("begin %u", ca->begin);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_ssthresh, struct sock *sk)
{
	return clamp((__u32)div64_u64(tcp_sk(sk)->snd_cwnd, 2), 2, 1000);
}

SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_slow_start(tcp_sk(sk), acked);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_undo, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops mine = {
	.init = (void *)mine_init,
	.ssthresh = (void *)mine_ssthresh,
	.cong_avoid = (void *)mine_cong_avoid,
	.undo_cwnd = (void *)mine_undo,
	.name = "mine",
};
"""


def program(text: str, **headers: str) -> ModuleSource:
    return ModuleSource("tcp_mine.bpf.c", text.encode(), {f"{name}.h": each.encode() for name, each in headers.items()})


def module(text: str) -> str:
    return native.module(program(text), EXPORTS)


def test_a_program_is_included_as_it_is_and_registered() -> None:
    text = module(PROGRAM)
    assert '#include "tcp_mine.bpf.c"' in text
    assert "native_ops[] = { &mine }" in text
    assert native.names(program(PROGRAM)) == ["mine"]
    assert "#undef clamp" in text
    assert "#define div64_u64 native_div64_u64" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "struct mine {\n",
            'struct { int key; } kept SEC(".maps");\nstruct mine {\n',
            r'tcp_mine\.bpf\.c:12: SEC\("\.maps"\): a native module has no maps but .*: keep .* in inet_csk_ca\(sk\)',
        ),
        (
            'bpf_printk("begin %u", ca->begin);',
            "bpf_map_lookup_elem(0, 0);",
            r":33: bpf_map_lookup_elem: .*inet_csk",
        ),
        (
            'bpf_printk("begin %u", ca->begin);',
            "bpf_setsockopt(sk, 6, TCP_NODELAY, &nodelay, 4);",
            r":33: bpf_setsockopt: .* only for TCP_CONGESTION: read and write the fields",
        ),
        ('bpf_printk("begin %u", ca->begin);', "bpf_get_stackid(0, 0);", r":33: bpf_get_stackid: .*bpf_ktime_get_ns"),
        (
            "extern __u32 tcp_slow_start",
            "extern __u32 tcp_fast_start",
            r":8: tcp_fast_start: this kernel does not export",
        ),
        ('"GPL"', '"Proprietary"', r':5: licence "Proprietary": write one of GPL'),
        ('SEC("license") = "GPL"', '= "GPL"', r":1: no licence: write char _license"),
        ('SEC(".struct_ops")', "", r":1: no congestion control is registered: write SEC"),
        ('SEC("struct_ops")\nvoid', 'SEC("kprobe/tcp_ack")\nvoid', r":27: SEC\(\"kprobe/tcp_ack\"\): only congestion"),
        (
            "__u32 ack, __u32 acked)",
            "struct rate_sample *rs)",
            r":43: the kernel calls \.cong_avoid otherwise: write BPF_",
        ),
        ("__u32 BPF_PROG(mine_undo", "void BPF_PROG(mine_undo", r":49: \.undo_cwnd returns a number: write u32"),
        (
            "BPF_PROG(mine_undo, struct sock *sk)",
            "mine_undo(__u64 *ctx)",
            r":59: \.undo_cwnd = mine_undo: define it by BPF",
        ),
        ("\t.undo_cwnd = (void *)mine_undo,\n", "", r":55: mine has no \.undo_cwnd, and the kernel registers none"),
        ('"mine",', '"a-name-of-16-char",', r':60: mine: write a \.name = "…" of its own, of 1 to 15 characters'),
        ("struct mine {", "struct tcp_sock___mine {", r":12: tcp_sock___mine: the structures are the kernel's own"),
    ],
)
def test_what_only_bpf_has_is_refused_with_its_line(old: str, new: str, said: str) -> None:
    assert old in PROGRAM
    with pytest.raises(native.NativeError, match=said):
        module(PROGRAM.replace(old, new, 1))


@pytest.mark.parametrize(
    "remark", ["/* bpf_map_lookup_elem(0, 0) */", '// SEC(".maps")', 'static const char said[] = "bpf_map_x()";']
)
def test_comments_and_strings_are_not_refused(remark: str) -> None:
    assert module(PROGRAM.replace("struct mine {", f"{remark}\nstruct mine {{", 1))


def test_a_header_of_the_program_is_refused_in_its_own_name() -> None:
    text = PROGRAM.replace('#include "vmlinux.h"', '#include "vmlinux.h"\n#include "mine.h"')
    with pytest.raises(native.NativeError, match=r"^mine\.h:2: bpf_map_lookup_elem: "):
        native.module(program(text, mine="\n#define GET() bpf_map_lookup_elem(0, 0)\n"), EXPORTS)


STORAGE = """\
struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int);
  __type(value, struct mine); } kept SEC(".maps");

SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
	struct mine *ca = bpf_sk_storage_get(&kept, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!ca || bpf_sk_storage_delete(&kept, sk))
		return;
"""
BEGIN = """\
SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
	struct mine *ca = (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
"""


def test_the_storage_of_a_socket_is_freed_when_the_control_leaves_it() -> None:
    assert "native_release" not in module(PROGRAM)
    assert "native_ops[number]->release = native_release;" in module(PROGRAM.replace(BEGIN, STORAGE))
    with pytest.raises(native.NativeError, match=r":28: BPF_F_CLONE: .* inherit nothing"):
        module(PROGRAM.replace(BEGIN, STORAGE.replace("NO_PREALLOC", "NO_PREALLOC | BPF_F_CLONE")))


def test_what_is_incomplete_is_left_out_beside_what_is_complete() -> None:
    other = 'SEC(".struct_ops")\nstruct tcp_congestion_ops none = { .init = (void *)mine_init, .name = "none" };\n'
    assert native.names(program(PROGRAM + other)) == ["mine"]


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headers")
    with tarfile.open(kernel(print).with_name("headers.tar.xz")) as archive:
        archive.extractall(folder, filter="tar")
    return folder


def build(headers: Path, folder: Path, program: ModuleSource) -> subprocess.CompletedProcess[str]:
    exports = native.exported((headers / "Module.symvers").read_text())
    name = program.name
    folder.mkdir()
    for file, text in program.files.items():
        (folder / file).write_bytes(text)
    (folder / native.c_file(name)).write_text(native.module(program, exports))
    (folder / "Makefile").write_text(native.makefile(name))
    command = ["make", "-s", "-C", str(headers), f"M={folder}", "ARCH=um", "KCFLAGS=-g", "modules"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode != 0 or (folder / f"{name}.ko").is_file()
    return built


@pytest.mark.virtual
@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_programs_compile_without_a_warning(headers: Path, tmp_path: Path, path: Path) -> None:
    frame, name = path.read_bytes(), path.name.replace(".bpf.c", ".c")
    ours = ModuleSource(path.name, frame.replace(b"../", b""), {name: path.parent.with_name(name).read_bytes()})
    built = build(headers, tmp_path / "build", ours)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.virtual
def test_a_program_may_define_what_the_kernel_defines(headers: Path, tmp_path: Path) -> None:
    # A copy of BPF's own header beside it, whose structures would be defined twice.
    (tmp_path / "vmlinux.h").write_text(
        "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\nstruct sock { int a; };\n#endif\n"
    )
    (tmp_path / "tcp_mine.bpf.c").write_text(PROGRAM.replace(BEGIN, STORAGE))
    built = build(headers, tmp_path / "build", source.read(tmp_path / "tcp_mine.bpf.c"))
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.virtual
def test_the_compiler_names_the_line_of_the_program(headers: Path, tmp_path: Path) -> None:
    built = build(headers, tmp_path / "build", program(PROGRAM.replace("->snd_cwnd;", "->snd_cwdn;")))
    assert built.returncode != 0
    assert "tcp_mine.bpf.c:51:" in built.stderr
