"""BPF programs of congestion control as modules of a kernel: what is refused, and what compiles."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from ewan.labs.base.product import ROOT
from ewan.labs.congestion import native
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


def module(text: str) -> str:
    return native.module({"tcp_mine.bpf.c": text}, EXPORTS)


def test_a_program_is_included_as_it_is_and_registered() -> None:
    text = module(PROGRAM)
    assert '#include "tcp_mine.bpf.c"' in text
    assert "native_ops[] = { &mine }" in text
    assert native.names({"tcp_mine.bpf.c": PROGRAM}) == ["mine"]
    assert "#undef clamp" in text
    assert "#define div64_u64 native_div64_u64" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "struct mine {\n",
            'struct { int key; } kept SEC(".maps");\nstruct mine {\n',
            r'tcp_mine\.bpf\.c:12: SEC\("\.maps"\): a native module has no maps: keep .* in inet_csk_ca\(sk\)',
        ),
        (
            'bpf_printk("begin %u", ca->begin);',
            "bpf_sk_storage_get(0, sk, 0, 0);",
            r":33: bpf_sk_storage_get: .*inet_csk",
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
    assert native.includes(text) == ["vmlinux.h", "mine.h"]
    with pytest.raises(native.NativeError, match=r"^mine\.h:2: bpf_map_lookup_elem: "):
        native.module({"m.bpf.c": text, "mine.h": "\n#define GET() bpf_map_lookup_elem(0, 0)\n"}, EXPORTS)


def test_a_program_is_read_with_the_files_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "a" / "m.bpf.c"
    program.parent.mkdir()
    program.write_text('#include "vmlinux.h"\n#include "../mine.h"\n#include "not-there.h"\n')
    (program.parent / "vmlinux.h").write_text("")
    (tmp_path / "mine.h").write_text('#include "a/m.bpf.c"\n')
    assert list(native.read(program)) == [str(program), str(tmp_path / "mine.h")]


def test_names_of_modules() -> None:
    assert native.module_name("a/tcp_mine.bpf.c") == "tcp_mine"
    assert native.module_name("my-own.c") == "my_own"


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headers")
    with tarfile.open(kernel(print).with_name("headers.tar.xz")) as archive:
        archive.extractall(folder, filter="tar")
    return folder


def build(headers: Path, folder: Path, program: Path) -> subprocess.CompletedProcess[str]:
    exports = native.exported((headers / "Module.symvers").read_text())
    name = native.module_name(program.name)
    folder.mkdir()
    (folder / f"{name}.c").write_text(native.module(native.read(program), exports))
    (folder / "Makefile").write_text(native.makefile(program.name))
    command = ["make", "-s", "-C", str(headers), f"M={folder}", "ARCH=um", "KCFLAGS=-g", "modules"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode != 0 or (folder / f"{name}.ko").is_file()
    return built


@pytest.mark.virtual
@pytest.mark.parametrize("program", OURS, ids=lambda path: path.name)
def test_our_programs_compile_without_a_warning(headers: Path, tmp_path: Path, program: Path) -> None:
    built = build(headers, tmp_path / "build", program)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.virtual
def test_a_program_may_define_what_the_kernel_defines(headers: Path, tmp_path: Path) -> None:
    program = tmp_path / "tcp_mine.bpf.c"
    # A copy of BPF's own header beside it, whose structures would be defined twice.
    (tmp_path / "vmlinux.h").write_text(
        "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\nstruct sock { int a; };\n#endif\n"
    )
    program.write_text(PROGRAM)
    built = build(headers, tmp_path / "build", program)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.virtual
def test_the_compiler_names_the_line_of_the_program(headers: Path, tmp_path: Path) -> None:
    program = tmp_path / "tcp_mine.bpf.c"
    program.write_text(PROGRAM.replace("->snd_cwnd;", "->snd_cwdn;"))
    built = build(headers, tmp_path / "build", program)
    assert built.returncode != 0
    assert f"{program}:51:" in built.stderr
