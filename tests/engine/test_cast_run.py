"""Users' own programs under a cast: a script, a model file, generate() and a pipeline."""

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.records import Label, Status, Verdict

SILU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
#include <cmath>
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
"""
LLAMA = """
import torch, transformers

def make_model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0,
    )).eval()

PROMPT = torch.arange(3, 12).reshape(1, 9)
"""
GENERATE = """
import sys
from llama import PROMPT, make_model

tokens = make_model().generate(PROMPT, max_new_tokens=12, do_sample=False, eos_token_id=None)
assert tokens.shape == (1, 21)
print(*sys.argv[1:], tokens[0].tolist())
"""
PIPELINE = """
import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel

def make_pipeline():
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=8,
        block_out_channels=(16, 32), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )
    pipeline = DDIMPipeline(unet.eval(), DDIMScheduler())
    pipeline.set_progress_bar_config(disable=True)
    return pipeline

def picture(pipeline):
    generator = torch.Generator().manual_seed(0)
    return pipeline(generator=generator, num_inference_steps=3, output_type="np").images
"""


class Recorder(TorchDispatchMode):
    """Every contiguous silu that runs, once for each shape."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        found = operator(*args, **(kwargs or {}))
        if operator is torch.ops.aten.silu.default and args[0].is_contiguous():
            self.calls[tuple(args[0].shape)] = args[0]
        return found


def silu_cast(path, run):
    """A cast for every silu that a program runs."""
    with torch.no_grad(), Recorder() as recorder:
        run()
    assert recorder.calls
    source = parse_source(SILU, "cpu")
    entries = []
    with torch.no_grad():
        for number, x in enumerate(recorder.calls.values()):
            operator = torch.ops.aten.silu.default
            call = describe(operator, (x,), {}, operator(x))
            entries.append(
                manifest.Entry(
                    node_id=f"n{number}",
                    call=call,
                    backend="cpu",
                    source_digest=source.digest,
                    plan=source.plan,
                    resolved=resolve(source.plan, call),
                    binaries=(),
                    verdict=Verdict(status=Status.VALID, reason="all rules hold"),
                    timing=None,
                    label=Label.GENERATED,
                    share=0.1,
                    calls=1,
                )
            )
    header = manifest.Header(
        created_at=0.0, kernelforge="0", torch=str(torch.__version__), device_name="x"
    )
    manifest.write(path, header, entries, sources={source.digest: SILU}, binaries={})
    return path


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What a file of the test defines."""
    monkeypatch.chdir(tmp_path)

    def defined(name, text):
        (tmp_path / name).write_text(text)
        found = {}
        exec(text, found)
        return found

    return defined


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "kernelforge_engine.cast.run", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def hits(ended):
    assert ended.returncode == 0, ended.stderr
    (line,) = [w for w in ended.stderr.splitlines() if w.endswith("calls ran a kernel")]
    return int(line.split()[-5])


def test_a_script_that_generates_runs_under_a_cast_as_it_is(names, tmp_path):
    llama = names("llama.py", LLAMA)
    model = llama["make_model"]()
    path = silu_cast(tmp_path / "silu.cast", lambda: model.generate(
        llama["PROMPT"], max_new_tokens=3, do_sample=False, eos_token_id=None))  # fmt: skip
    (tmp_path / "generate.py").write_text(GENERATE)
    ended = run("generate.py", "--cast", path, "--seed", "7")
    assert hits(ended) == 2 * 12  # two layers, a prompt and eleven steps
    plain = model.generate(llama["PROMPT"], max_new_tokens=12, do_sample=False, eos_token_id=None)
    assert ended.stdout == f"--seed 7 {plain[0].tolist()}\n"


def test_a_pipeline_runs_under_three_lines(names, tmp_path):
    pipeline = names("pipeline.py", PIPELINE)
    made = pipeline["make_pipeline"]()
    path = silu_cast(tmp_path / "silu.cast", lambda: pipeline["picture"](made))
    (tmp_path / "script.py").write_text(
        "from pipeline import make_pipeline, picture\n"
        "from kernelforge_engine import cast\n"
        "pipeline = make_pipeline()\n"
        "before = picture(pipeline)\n"
        f"with cast.load({str(path)!r}) as kernels:\n"
        "    after = picture(pipeline)\n"
        "print(kernels.counters().hits, abs(before - after).max() < 1e-4)\n"
    )
    ended = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, check=True
    )
    count, close = ended.stdout.split()
    assert (int(count) > 0, close) == (True, "True")


@pytest.fixture
def model_file(names, tmp_path):
    names(
        "model.py",
        "import torch\n\ndef make_model():\n    return torch.nn.SiLU()\n\n"
        "def make_inputs():\n    return torch.randn(4, 8)\n",
    )
    return silu_cast(tmp_path / "silu.cast", lambda: torch.nn.SiLU()(torch.randn(4, 8)))


def test_a_model_file_is_run_once(model_file):
    ended = run("model.py", "--cast", model_file)
    assert hits(ended) == 1
    assert "n0 aten::silu: 1 calls" in ended.stderr


def test_the_kill_switch_is_named(model_file, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_DISABLE", "1")
    ended = run("model.py", "--cast", model_file)
    assert ended.returncode == 0
    assert "switched off by KERNELFORGE_DISABLE" in ended.stderr


def test_what_cannot_be_run_is_said_in_a_sentence(model_file, sentence):
    assert "no readable file at nothing.py" in sentence(run("nothing.py", "--cast", model_file), 2)
    (model_file.parent / "bad.cast").write_text("no")
    assert "is not a cast" in sentence(run("model.py", "--cast", "bad.cast"), 2)


def test_a_script_that_exits_or_raises_ends_as_it_would_alone(model_file, tmp_path):
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(7)\n")
    ended = run("exits.py", "--cast", model_file)
    assert (ended.returncode, "0 calls ran a kernel" in ended.stderr) == (7, True)
    (tmp_path / "raises.py").write_text("raise ValueError('of its own')\n")
    ended = run("raises.py", "--cast", model_file)
    assert (ended.returncode, "ValueError: of its own" in ended.stderr) == (1, True)
