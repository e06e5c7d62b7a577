"""What a capture measures of a machine and of a call, and what it concludes from it."""

import json
import time

import pytest
import torch

from kernelforge_engine.calls import Argument, Call, OutputSpec, Region, Step, TensorSpec
from kernelforge_engine.worker.clock import call_us, device_us, wall_us
from kernelforge_engine.worker.roofline import Roofline, bound_of
from kernelforge_engine.worker.traffic import call_bytes, least_bytes

pytestmark = pytest.mark.calm

BACKENDS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
CPU = torch.device("cpu")
TRIES = 6


class Counted:
    """A run that takes a while, and how often it was made."""

    def __init__(self, seconds):
        self.runs, self._seconds = 0, seconds

    def __call__(self):
        self.runs += 1
        time.sleep(self._seconds)


@pytest.mark.parametrize(("seconds", "most"), [(0.005, 7), (0.3, 4), (1.0, 2)])
def test_a_slow_call_is_timed_in_few_runs(seconds, most):
    run = Counted(seconds)
    assert device_us(run, CPU) >= seconds * 1e6
    assert run.runs <= most


def test_a_slow_model_is_timed_once():
    run = Counted(2.6)
    assert wall_us(run) >= 2.6e6
    assert run.runs == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["item", "nonzero", "relu", "dropout"])
def test_an_operator_is_timed_whether_or_not_a_graph_can_hold_it(name):
    device = torch.device("cuda", 0)
    x = torch.randn(64, 64, device=device)
    runs = {
        "item": lambda: x.sum().item(),
        "nonzero": x.nonzero,
        "relu": lambda: torch.relu(x),
        "dropout": lambda: torch.dropout(x, 0.5, True),
    }
    with torch.no_grad():  # the device may be busy with other work during one of the two
        rates = ((device_us(runs[name], device), call_us(runs[name], device)) for _ in range(TRIES))
        assert any(0 < alone <= 1.5 * called for alone, called in rates)
    torch.rand(8, device=device)  # which a generator refuses that believes it is in a graph
    torch.cuda.synchronize()
    assert not torch.cuda.is_current_stream_capturing()


@pytest.mark.gpu
def test_an_operator_that_breaks_a_capture_leaves_the_device_as_it_was():
    device = torch.device("cuda", 0)
    x = torch.randn(64, device=device)

    def breaking():
        if torch.cuda.is_current_stream_capturing():
            torch.rand(4, device=device)
            torch.cuda.synchronize()
        return torch.relu(x)

    assert device_us(breaking, device) > 0
    assert torch.rand(1000, device=device).unique().numel() > 900
    assert device_us(lambda: torch.relu(x), device) < 20


@pytest.mark.parametrize("device", BACKENDS)
def test_the_rates_of_a_machine_are_kept(tmp_path, device):
    place = torch.device(device, 0) if device == "cuda" else CPU
    for _ in range(8):
        first = Roofline(place, tmp_path).bytes_per_us
    (file,) = (tmp_path / "rates").iterdir()
    assert json.loads(file.read_text())["rates"]["memory"][0] == first
    assert Roofline(place, tmp_path).bytes_per_us == first
    assert 0 < Roofline(place, tmp_path).flops_per_us(torch.float32) < float("inf")


FOREIGN = '{"machine": ["another", "1.0", 1], "rates": {"memory": [1.0, 9]}}'


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"machine": 3}', FOREIGN])
def test_a_damaged_or_foreign_file_of_rates_costs_a_measurement(tmp_path, text):
    Roofline(CPU, tmp_path).bytes_per_us  # noqa: B018  it is measured when it is asked for
    (file,) = (tmp_path / "rates").iterdir()
    file.write_text(text)
    assert Roofline(CPU, tmp_path).bytes_per_us > 1
    assert json.loads(file.read_text())["machine"][0] != "another"


def test_a_cache_that_cannot_be_written_costs_a_measurement(tmp_path):
    (tmp_path / "file").write_text("")
    assert Roofline(CPU, tmp_path / "file").bytes_per_us > 1


@pytest.mark.parametrize(
    ("wall", "busy", "floors", "bound"),
    [
        (None, 10.0, [(1.0, 0.0)], None),
        (100.0, 59.0, [(1.0, 50.0)], "launch-bound"),
        (100.0, 61.0, [(10.0, 1.0), (1.0, 9.0)], "memory-bound"),
        (100.0, 130.0, [(10.0, 1.0), (1.0, 11.0)], "compute-bound"),
        (100.0, 90.0, [], "memory-bound"),
    ],
)
def test_what_holds_a_model_back_follows_from_its_times_and_floors(wall, busy, floors, bound):
    assert bound_of(wall, busy, floors) == bound


def tensor(*shape, dtype="float32"):
    stride = tuple(torch.empty(shape, device="meta").stride())
    return TensorSpec(dtype=dtype, shape=shape, stride=stride, device="cpu")


def call(operator, inputs, output, *, alias=None, region=None):
    return Call(
        operator=operator,
        overload="",
        words=(),
        arguments=tuple(Argument(name=f"a{i}", value={"tensor": i}) for i in range(len(inputs))),
        inputs=tuple(inputs),
        outputs=(OutputSpec(tensor=output, alias=alias),),
        mutated=() if alias is None else (alias,),
        region=region,
    )


TABLE, PLACES, ROWS = tensor(10_000, 64), tensor(8, dtype="int64"), tensor(8, 64)
WEIGHTS = tensor(128, 64, 32, dtype="bfloat16")
FEW, ENDS = tensor(4, 64, dtype="bfloat16"), tensor(128, dtype="int32")
SUM = call("aten::add", [ROWS, ROWS], ROWS)


@pytest.mark.parametrize(
    ("what", "likely", "certain"),
    [
        (SUM, 3 * 2048, 3 * 2048),
        (call("aten::embedding", [TABLE, PLACES], ROWS), 2048 + 64 + 2048, 64 + 2048),
        (call("aten::copy_", [ROWS, ROWS], ROWS, alias=0), 2 * 2048, 2 * 2048),
        (call("aten::index_copy_", [TABLE, PLACES, ROWS], TABLE, alias=0), 4160, 4160),
        (
            call("aten::_grouped_mm", [FEW, WEIGHTS, ENDS], tensor(4, 32, dtype="bfloat16")),
            512 + 4 * 4096 + 512 + 256,
            512 + 4096 + 512 + 256,
        ),
    ],
)
def test_the_bytes_of_a_call_are_those_it_touches(what, likely, certain):
    assert (call_bytes(what), least_bytes(what)) == (likely, certain)


def test_a_region_that_only_looks_rows_up_does_not_read_the_table():
    step = Step(
        operator="aten::embedding",
        overload="",
        arguments=(
            Argument(name="weight", value={"tensor": 1}),
            Argument(name="indices", value={"tensor": 0}),
        ),
        results=1,
    )
    use = Step(
        operator="aten::cat",
        overload="",
        arguments=(Argument(name="tensors", value=[{"tensor": 2}, {"tensor": 1}]),),
        results=1,
    )
    looking = Region(kind="module", owner="m.Look", source="", steps=(step,), returns=(2,))
    reading = Region(kind="module", owner="m.Read", source="", steps=(step, use), returns=(3,))
    partly = call("region::Look", [PLACES, TABLE], ROWS, region=looking)
    wholly = call("region::Read", [PLACES, TABLE], ROWS, region=reading)
    assert call_bytes(partly) == 64 + 2048
    assert call_bytes(wholly) == 64 + TABLE.data_bytes + 2048
