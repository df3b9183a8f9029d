"""``ptxmma check --nvcc`` and ``--compile-commands``: the PTX of a CUDA source, with findings at the places in the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxmma import paths
from ptxmma.ptx.source_lines import SourceLines, SourcePlace

#: A kernel without a wgmma.fence.  The product is in wrapper.cuh, inlined in step.cuh, which is inlined in kernel.cu.
_MODULE = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry first(.param .u64 out)
{
	.reg .b64 %rd<3>;
	.reg .f32 %f<4>;
	.reg .pred %p<2>;
	.loc	1 3 0
	.loc	1 4 3
	.loc	2 2 5, function_name $L__info_string0, inlined_at 1 4 3
	.loc	3 7 9, function_name $L__info_string1, inlined_at 2 2 5
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %p1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	.loc	1 5 3
	add.f32 %f1, %f1, %f2;
	ret;
}
	.file	1 "{folder}/kernel.cu"
	.file	2 "{folder}/step.cuh"
	.file	3 "/elsewhere/wrapper.cuh"
"""

_SOURCES = {
    "kernel.cu": "#include <ptxmma/wgmma/bf16_bf16.cuh>\n\n__global__ void first(float* out) {\n  step(out);\n  use(out);\n}\n",
    "step.cuh": "__device__ void step(float* out) {\n    product(out);\n}\n",
}

#: A program in nvcc's place, which says how it was called, and copies the module.
_FAKE = f"""#!{sys.executable}
import json, os, pathlib, shutil, sys
folder = pathlib.Path(__file__).parent
(folder / "called.json").write_text(json.dumps([os.getcwd(), sys.argv[1:]]))
if "--wrong" in sys.argv:
    print("kernel.cu(4): error: identifier \\"step\\" is undefined")
    print("1 error detected", file=sys.stderr)
    sys.exit(2)
if sum(argument.startswith(("-gencode", "--generate-code")) for argument in sys.argv) > 1:
    sys.exit("nvcc fatal   : Option '--ptx (-ptx)' is not allowed when compiling for multiple GPU architectures")
shutil.copy(folder / "module.ptx", sys.argv[sys.argv.index("-o") + 1])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with sources and the fake nvcc."""
    for name, text in {**_SOURCES, "module.ptx": _MODULE.replace("{folder}", str(tmp_path)), "nvcc": _FAKE}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "nvcc").chmod(0o755)
    return tmp_path


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "ptxmma", "check", "--isolated", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _findings(done: subprocess.CompletedProcess[str]) -> list[Any]:
    return list(json.loads(done.stdout)["findings"])


def test_places_of_lines() -> None:
    lines = SourceLines(_MODULE.replace("{folder}", "/here").encode())
    inlined = [SourcePlace("/elsewhere/wrapper.cuh", 7, 9), SourcePlace("/here/step.cuh", 2, 5), SourcePlace("/here/kernel.cu", 4, 3)]
    assert lines.of(13) == tuple(inlined)
    assert lines.of(14) == tuple(inlined)  # the last place before a line is its own
    assert lines.of(16) == (SourcePlace("/here/kernel.cu", 5, 3),)
    assert lines.of(3) == lines.of(18) == lines.of(20) == ()  # outside the function


def test_findings_are_at_the_innermost_place_of_the_author(project: Path) -> None:
    done = _run(project, "--nvcc", "-arch=sm_90a '-DNAME=a b'", "--json", "kernel.cu")
    assert done.returncode == 1, done.stderr
    folder, arguments = json.loads((project / "called.json").read_text())
    assert Path(folder) == project
    assert arguments[:4] == ["-arch=sm_90a", "-DNAME=a b", "-lineinfo", "-ptx"]
    assert arguments[-1] == str(project / "kernel.cu")
    fence, wait = _findings(done)
    assert (fence["rule"], fence["file"], fence["line"], fence["column"]) == ("missing-fence", "step.cuh", 2, 5)
    assert fence["message"].endswith("; in /elsewhere/wrapper.cuh:7, called from kernel.cu:4, line 13 of the PTX")
    assert (wait["rule"], wait["file"], wait["line"]) == ("missing-wait", "kernel.cu", 5)
    assert "the wgmma.mma_async of line 13 (step.cuh:2) may still write it" in wait["message"]
    assert wait["message"].endswith("; line 16 of the PTX")
    text = _run(project, "--nvcc", "", "kernel.cu").stdout
    assert "step.cuh:2:5: warning: " in text
    assert "\n        product(out);\n        ^\n" in text


def test_a_comment_in_the_source_ignores_a_rule(project: Path) -> None:
    source = project / "step.cuh"
    source.write_text(source.read_text().replace("product(out);", "product(out);  // ptxmma: ignore[missing-fence]"))
    assert [each["rule"] for each in _findings(_run(project, "--nvcc", "", "--json", "kernel.cu"))] == ["missing-wait"]


def test_a_template_that_is_compiled_twice_is_found_once(project: Path) -> None:
    module = project / "module.ptx"
    text = module.read_text()
    kernel = text[text.index(".visible") : text.index("\t.file")]
    module.write_text(text.replace(kernel, kernel + kernel.replace("first", "second")))
    done = _run(project, "--nvcc", "", "--json", "kernel.cu")
    assert len(_findings(done)) == 2
    assert "2 of the same cause not shown" in done.stderr


def test_errors_of_nvcc_are_shown_as_they_are(project: Path) -> None:
    done = _run(project, "--nvcc", "--wrong", "--json", "kernel.cu")
    assert done.returncode == 2
    assert _findings(done) == []  # nothing else is on standard output
    assert 'kernel.cu(4): error: identifier "step" is undefined\n1 error detected\n' in done.stderr
    assert "error: kernel.cu: cannot be compiled: nvcc ends with 2\n" in done.stderr


def test_a_missing_nvcc_is_named(project: Path) -> None:
    commands = [{"directory": str(project), "file": "kernel.cu", "arguments": [str(project / "no" / "nvcc"), "-c", "kernel.cu"]}]
    (project / "compile_commands.json").write_text(json.dumps(commands))
    done = _run(project, "--compile-commands", "compile_commands.json", "kernel.cu")
    assert done.returncode == 2
    assert "no/nvcc cannot be started: No such file or directory\n" in done.stderr


def test_each_of_several_targets_is_compiled(project: Path) -> None:
    targets = ["-gencode", "arch=compute_80,code=sm_80", "--generate-code=arch=compute_90a,code=[compute_90a,sm_90a]"]
    commands = [{"directory": str(project), "file": "kernel.cu", "arguments": ["nvcc", "-O3", *targets, "-c", "kernel.cu"]}]
    (project / "compile_commands.json").write_text(json.dumps(commands))
    done = _run(project, "--compile-commands", "compile_commands.json", "--json", "kernel.cu")
    assert len(_findings(done)) == 2, done.stderr
    assert "2 of the same cause not shown" in done.stderr
    assert json.loads((project / "called.json").read_text())[1][:3] == ["-O3", targets[2], "-lineinfo"]
    for kept in (targets[:2], targets[2:]):
        _run(project, "--nvcc", f"-O3 {' '.join(kept)}", "kernel.cu")
        assert json.loads((project / "called.json").read_text())[1][: 1 + len(kept)] == ["-O3", *kept]


def test_the_entry_of_a_compilation_database(project: Path) -> None:
    build = project / "build"
    build.mkdir()
    call = "nvcc -DNAME='a;touch hacked' -MD -MT x.o -MF x.d -x cu -c ../kernel.cu -o x.o"
    commands = [
        {"directory": str(build), "file": "../kernel.cu", "command": call},
        {"directory": str(build), "file": "../other.cu", "arguments": ["clang++", "-c", "../other.cu"]},
    ]
    (project / "compile_commands.json").write_text(json.dumps(commands))
    (project / "other.cu").write_text("")
    done = _run(project, "--compile-commands", "compile_commands.json", "--json", "kernel.cu", "other.cu")
    assert {each["file"] for each in _findings(done)} == {"step.cuh", "kernel.cu"}
    assert done.returncode == 2
    assert "error: other.cu: cannot be compiled: the compilation database has no entry with nvcc for it\n" in done.stderr
    assert _run(project, "--compile-commands", "compile_commands.json", ".").returncode == 1  # of a directory it is read as it is
    folder, arguments = json.loads((project / "called.json").read_text())
    assert Path(folder) == build
    assert arguments[:5] == ["-DNAME=a;touch hacked", "-x", "cu", "-lineinfo", "-ptx"]  # a list of arguments: no shell reads them
    assert not list(project.rglob("hacked"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[\n {", "compile_commands.json:2:3: not JSON from here on"),
        ("[{}]", "compile_commands.json: entry [0] is not as in a compilation database"),
        ('[{"directory": ".", "file": "a"}, {"directory": "."}]', "compile_commands.json: entry [1] is not"),
        ("{}", "compile_commands.json: the document is not"),
        ('[{"directory": ".", "file": 1}]', "compile_commands.json: entry [0] is not"),
        ('[{"directory": ".", "file": "a", "command": "nvcc \'"}]', "compile_commands.json: entry [0]: 'command' has a quotation"),
    ],
)
def test_what_is_no_compilation_database_is_refused(text: str, message: str, project: Path) -> None:
    (project / "compile_commands.json").write_text(text)
    done = _run(project, "--compile-commands", "compile_commands.json", "kernel.cu")
    assert done.returncode == 2
    assert f"Error: {message}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--compile-commands", "x.json"), "--compile-commands says how to compile .cu files: name them"),
        (("--nvcc", "-arch=sm_90a"), "--nvcc says how to compile .cu files: name them"),
        (("--nvcc", "nvcc -arch=sm_90a", "kernel.cu"), "--nvcc takes the options of nvcc without the command: leave out 'nvcc'"),
    ],
)
def test_options_that_compile_nothing(arguments: tuple[str, ...], message: str, project: Path) -> None:
    done = _run(project, *arguments)
    assert done.returncode == 2
    assert f"Error: {message}" in done.stderr


def test_ptx_without_a_kernel_is_named(project: Path) -> None:
    (project / "module.ptx").write_text(".version 8.0\n.target sm_90a\n.address_size 64\n")
    summary = _run(project, "--nvcc", "", "kernel.cu").stderr
    assert summary.endswith("0 findings; the PTX of 1 file has no kernel: nvcc compiles a template only where it is instantiated\n")
    (project / "only.cuh").write_text(_SOURCES["kernel.cu"])
    assert _run(project, "--nvcc", "", "only.cuh").stderr.endswith("; 1 file not compiled calls wrappers, which are checked in PTX\n")


def test_nothing_is_compiled_unless_it_is_asked_for(project: Path) -> None:
    done = _run(project, "kernel.cu")
    assert done.returncode == 0
    assert done.stderr == "1 file, 0 instructions checked, 0 findings; 1 file calls wrappers, which are checked in PTX: see --nvcc\n"
    assert not (project / "called.json").exists()
    done = _run(project, "--nvcc", "-arch=sm_90a", "--compile-commands", "x.json", "kernel.cu")
    assert done.returncode == 2
    assert "leave one out" in done.stderr


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
def test_with_nvcc(project: Path) -> None:
    (project / "nvcc").unlink()
    (project / "step.cuh").write_text("""#include <ptxmma/wgmma/bf16_bf16.cuh>
using M = ptxmma::wgmma<ptxmma::shape<64, 8, 16>, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
__device__ void step(float (&d)[4], uint64_t a, uint64_t b) {
  using Matrix = ptxmma::matrix_descriptor<PTXMMA_MAJORNESS_K>;
  M::call(d, Matrix{a}, Matrix{b}, true);
}
""")
    (project / "kernel.cu").write_text("""#include "step.cuh"
__global__ void kernel(float* out, uint64_t a, uint64_t b) {
  float d[4];
  step(d, a, b);
  ptxmma::wgmma_commit_group();
  out[threadIdx.x] = d[0];
}
""")
    done = _run(project, "--nvcc", f"-std=c++17 -arch=sm_90a '-I{paths.INCLUDE}'", "--json", "kernel.cu")
    assert done.returncode == 1, done.stderr
    fence, wait = _findings(done)
    assert (fence["rule"], fence["file"], fence["line"]) == ("missing-fence", "step.cuh", 5)
    assert "; in ptxmma/wgmma/bf16_bf16.cuh:" in fence["message"]
    assert ", called from kernel.cu:4, line " in fence["message"]
    assert (wait["rule"], wait["file"], wait["line"]) == ("missing-wait", "kernel.cu", 6)
