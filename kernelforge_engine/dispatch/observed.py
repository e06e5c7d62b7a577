"""One call of a region, run by the model's own code while its operators are recorded.

It is compared with what a kernel was judged on: names and arguments do not tell what code does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import Unguardable
from kernelforge_engine.dispatch.recording import Recording, below_autograd, flattened
from kernelforge_engine.dispatch.regions import Entered, describe_region


class _Recorder(TorchDispatchMode):
    """Runs every operator as it is, and notes it until one cannot be part of a region."""

    def __init__(self, given: Entered) -> None:
        super().__init__()
        self.recording = Recording(given)
        self.refused = False

    def __torch_dispatch__(
        self,
        op: OpOverload,
        _types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        output = op(*args, **named)
        if not self.refused:
            try:
                self.recording.add(op, args, named, output)
            except Unguardable:
                self.refused = True
        return output


def observed(
    run: Callable[[], Any],
    given: Entered,
    name: str,
    kind: Literal["module", "function"],
    owner: str,
) -> tuple[Any, Call | None]:
    """What `run` returns, called once, and its record: None where it is no region.

    No derivative of it may be wanted.
    """
    recorder = _Recorder(given)
    with torch.no_grad(), below_autograd(), recorder:
        output = run()
    if recorder.refused:
        return output, None
    try:
        region = recorder.recording.region(output, kind=kind, owner=owner, source="")
        outputs = [t for t in flattened(output) if t is not None]
        return output, describe_region(name, given, outputs, region)
    except Unguardable:
        return output, None
