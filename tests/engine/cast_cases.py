"""Small casts, made from data alone: a relu of one shape, on a machine of any name."""

import dataclasses

from kernelforge_engine import codec
from kernelforge_engine.calls import Argument, Call, OutputSpec, Region, Step, TensorSpec
from kernelforge_engine.cast import manifest
from kernelforge_engine.cast.words import words_of
from kernelforge_engine.evidence import Machine, Origin, Sample
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.records import Label, Outcome, Status, Timing, Verdict

RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
OTHER_RELU = RELU.replace("x[i] < 0.f ? 0.f : x[i]", "0.f < x[i] ? x[i] : 0.f")
GPU_RELU = """/* kernelforge
[[launch]]
kernel = "k"
grid = [1]
block = [32]
args = ["in0", "out0"]
*/
extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""
HERE = "AMD EPYC"


def relu(shape=(8, 16), device="cpu", dtype="float32"):
    stride = _strides(shape)
    spec = TensorSpec(dtype=dtype, shape=tuple(shape), stride=stride, device=device)
    value = {"tensor": 0}
    return Call(
        operator="aten::relu",
        overload="",
        words=words_of([value], [spec]),
        arguments=(Argument(name="self", value=value),),
        inputs=(spec,),
        outputs=(OutputSpec(tensor=spec),),
    )


def _strides(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def timing(speedup, **more):
    return Timing(
        outcome=Outcome.FASTER, speedup=speedup, low=speedup - 0.1, high=speedup + 0.1,
        eager_us=3.0, candidate_us=3.0 / speedup, scope="O", **more,
    )  # fmt: skip


SAMPLE = Sample(dtype="F32", whole=False, data="AACAPwAAAMAAAEBA")


def origin(device=HERE, arch="native", torch="2.13.0", samples=(SAMPLE,)):
    machine = Machine(device_name=device, arch=arch, torch=torch, kernelforge="0.1.0")
    return Origin(artifact_digest="a" * 64, compiler="g++ -O3", machine=machine, samples=samples)


def entry(text=RELU, call=None, *, node="n1", speedup=1.5, **more):
    call = call or relu()
    source = parse_source(text, call.backend)
    made = manifest.Entry(
        node_id=node,
        call=call,
        backend=call.backend,
        source_digest=source.digest,
        plan=source.plan,
        resolved=resolve(source.plan, call),
        binaries=(),
        verdict=Verdict(status=Status.VALID, reason="every rule holds"),
        timing=timing(speedup) if speedup else None,
        label=Label.GENERATED,
        share=0.25,
        calls=3,
        origin=origin(),
    )
    return dataclasses.replace(made, **more)


def region_entry(text, **more):
    """An entry for a region that is a relu, with the text of its forward."""
    call = relu()
    argument = Argument(name="self", value={"tensor": 0})
    region = Region(
        kind="module",
        owner="package.Chain",
        source=text,
        steps=(Step(operator="aten::relu", overload="", arguments=(argument,), results=1),),
        returns=(1,),
    )
    x = Argument(name="x", value={"tensor": 0})
    program = Argument(name="program", value=region.digest)
    call = dataclasses.replace(
        call, operator="region::Chain", arguments=(x, program), region=region,
        words=words_of([x.value, program.value], call.inputs),
    )  # fmt: skip
    return entry(call=call, **more)


def gpu_entry(arch, device, *, image=None, **more):
    """An entry with a cubin for one architecture, and the cubin."""
    image = image or f"cubin of {arch}".encode()
    binary = manifest.Binary(
        arch=arch, digest=codec.sha256(image), symbols={"k": "k"}, compiler="nvcc"
    )
    found = entry(
        GPU_RELU, relu(device="cuda"), binaries=(binary,), origin=origin(device, arch), **more
    )
    return found, {binary.digest: image}


def header(**changes):
    made = manifest.Header(
        created_at=1_700_000_000.0, kernelforge="0.1.0", torch="2.13.0", device_name=HERE
    )
    return dataclasses.replace(made, **changes)


def written(path, *entries, binaries=None, **changes):
    """A cast of these entries, read back."""
    texts = {codec.sha256(text): text for text in (RELU, OTHER_RELU, GPU_RELU)}
    manifest.write(path, header(**changes), entries, sources=texts, binaries=binaries or {})
    return manifest.read(path)
