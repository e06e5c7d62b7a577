"""One module, or one function, whose calls kernels may serve.

A call goes to a kernel when everything the kernel was judged for agrees: its arguments, attributes
and structure are compared here, its tensors and torch's state in the shim, and its program once, by
recording the first call that agrees in all the rest.
"""

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import Unguardable, spec_of
from kernelforge_engine.dispatch.facts import Facts, binding, sift
from kernelforge_engine.dispatch.instance import all_values
from kernelforge_engine.dispatch.kernels import Kernel, Words, tensor_words
from kernelforge_engine.dispatch.known import FORMS, NOTHING, Known, Serving, Site, Way, look
from kernelforge_engine.dispatch.observed import observed
from kernelforge_engine.dispatch.regions import Entered, entered
from kernelforge_engine.dispatch.shim import PROVEN, REASONS, REFUSED, UNPROVEN, Shim
from kernelforge_engine.dispatch.structure import Trace

UNSEEN: Any = object()
MISSED: Any = object()  # the call goes to the model's own code
ASK = -1 - len(REASONS)  # the outcome of a call that agrees in all but its program, as yet unknown
CHANGES, REST = 8, 64  # an instance that keeps changing is looked at once in so many calls
LOOK = 64  # calls that are far from all that is served, after which an instance is looked at again

# Words of Counters beside the REASONS of the shim.
HOOKS, CHANGING, FIRST, PROGRAM, COMPILED = OWN = (
    "hooks", "changing", "first_call", "program", "compiled",
)  # fmt: skip


class Served(Serving, Protocol):
    """What an instance needs to know of the class or function it belongs to: a Ledger."""

    shim: Shim
    counts: dict[str, int]  # calls that went to the model's own code, by reason

    @property
    def signature(self) -> Any: ...
    def site(self, kernels: tuple[Kernel, ...]) -> Site | None: ...
    def keep(self, site: Site) -> None: ...
    def gone(self, instance: "Instance") -> None: ...


Live = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]  # what is called, and with what


class Instance:
    """Serves the calls of one module, or of a function where `module` is None."""

    def __init__(self, served: Served, module: torch.nn.Module | None = None) -> None:
        self._served, self._counts = served, served.counts
        self._module = weakref.ref(module, self._gone) if module is not None else None
        self._lock = threading.RLock()  # a module may go while it is held
        self._known = NOTHING
        self._trace: Trace | None = None  # of what it was when it was served last
        self._dtype: torch.dtype | None = None
        self._sites: list[Site] = []
        self._changes = self._resting = self._misses = 0

    def serve(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a kernel answers to a call of `original`, or MISSED, counted by its reason."""
        known = self._known
        if known.version is not self._served.version:
            known = self._learned()
        if not known.kernels:
            return self._missed("guard") if known.covered else MISSED
        shape = (len(args), *kwargs) if kwargs else len(args)
        way = known.ways.get(shape, UNSEEN)
        if way is UNSEEN:
            way = known.ways[shape] = self._way(known, len(args), tuple(kwargs))
        if way is None:
            return self._far(known)
        values = way.binding.values(args, kwargs)
        tensors: list[Tensor] = []
        facts: list[object] = []
        if why := sift(values, tensors, facts):
            return self._missed(why)
        site = way.sites.get(tuple(facts))
        if site is None or (tensors or known.tensors)[0].shape not in site.shapes:
            return self._far(known)
        return self._near(known, way, site, values, tensors, (original, args, kwargs))

    def _far(self, known: Known) -> Any:
        """A call that its arguments alone tell from all that are served. Whether these are still
        the right ones to compare with takes longer to say, so that it is not asked every time."""
        self._misses += 1
        if not self._misses % LOOK and not known.holds():
            self._learned()
        return self._missed("guard")

    def _near(
        self,
        known: Known,
        way: Way,
        site: Site,
        values: Sequence[Any],
        tensors: list[Tensor],
        call: Live,
    ) -> Any:
        """A call that may be served: the shim compares its tensors and runs the kernel."""
        if not known.holds():
            if self._rests():
                return self._missed(CHANGING)
            self._learned()
            return self.serve(*call)
        if known.hooks and any(known.hooks):
            return self._missed(HOOKS)
        tensors += known.tensors
        if not torch._C._is_torch_function_mode_enabled():
            outputs, outcome = self._served.shim.serve(tensors, site.number)
        elif _only_devices(tensors[0]):
            with torch._C.DisableTorchFunction():
                outputs, outcome = self._served.shim.serve(tensors, site.number)
        else:
            return self._missed("key_set")
        if outcome >= 0:
            return FORMS.made[outcome](outputs)
        if outcome != ASK:
            return MISSED  # counted by the shim
        given = dict(zip(way.binding.names, values, strict=True))
        return self._observed(known, site, given, call)

    def trust(self, count: int) -> None:
        """Take calls with so many positional arguments for what was judged, unseen."""
        way = self._way(self._learned(), count, ())
        for site in way.sites.values() if way is not None else ():
            self._say(site, PROVEN)

    def release(self) -> None:
        """Hold on to nothing of the module."""
        with self._lock:
            self._keep_trace()
            self._known = NOTHING

    def _gone(self, _module: object) -> None:
        """The module is gone: its sites may serve another one."""
        self._known = NOTHING
        self._served.gone(self)
        self._forget()
        for site in self._sites:
            self._served.keep(site)
        self._sites = []

    def _missed(self, reason: str) -> Any:
        # Without a lock: it would take as long as all the rest, and CPython does not leave a thread
        # between reading and storing an entry of a plain dictionary.
        self._counts[reason] += 1
        return MISSED

    def _observed(
        self,
        known: Known,
        site: Site,
        given: Mapping[str, Any],
        call: Live,
    ) -> Any:
        """Run the model's own code once, and compare its program with those of the kernels."""
        try:
            found = entered(all_values(given, known.attributes, known.named))
        except Unguardable:
            return self._missed("key_set")
        module = self._module() if self._module is not None else None
        original, args, kwargs = call
        head = () if module is None else (module,)
        kernel = site.kernels[0]
        try:
            output, record = observed(
                lambda: original(*head, *args, **kwargs),
                found,
                kernel.name,
                kernel.region.kind,
                kernel.region.owner,
            )
        except Exception:  # noqa: BLE001  below autograd, code that differentiates raises
            self._compared(known, site, _words(found), None)
            return self._missed(PROGRAM)  # what is wrong with the call itself is raised again
        same = self._compared(known, site, _words(found), record)
        self._counts[FIRST if same else PROGRAM] += 1
        return output

    def _compared(self, known: Known, site: Site, words: Words, call: Call | None) -> bool:
        """Whether a kernel was judged on what a call did; from now on it serves such calls."""
        proofs = {
            variant: PROVEN if call is not None and _is_judged(kernel.call, call) else REFUSED
            for kernel, variant in site.variants.get(words, ())
        }
        with self._lock:
            if self._known is known and known.holds():
                for variant, proof in proofs.items():
                    self._served.shim.prove(variant, proof)
        return PROVEN in proofs.values()

    def _rests(self) -> bool:
        """Whether it changes too often to be looked at again so soon."""
        if self._resting:
            self._resting -= 1
            return True
        self._changes += 1
        self._resting = REST if self._changes > CHANGES else 0
        return False

    def _forget(self) -> None:
        """What ran before may not be what runs now."""
        for site in self._sites:
            self._say(site, UNPROVEN)

    def _say(self, site: Site, proof: int) -> None:
        for variants in site.variants.values():
            for _, variant in variants:
                self._served.shim.prove(variant, proof)

    def _learned(self) -> Known:
        """Look at the module, and at the kernels that may serve it."""
        module = self._module() if self._module is not None else None
        with self._lock:
            known = look(self._served, module)
            self._keep_trace()
            trace, structure = self._trace, known.structure
            is_other = structure is not None and (trace is None or not trace.fits(structure))
            if is_other or known.dtype is not self._dtype:
                self._forget()
            self._known, self._dtype, self._trace = known, known.dtype, None
            return known

    def _keep_trace(self) -> None:
        """Remember what it was when it was compared: what was proven holds for that."""
        if self._known.structure is not None:
            self._trace = Trace(self._known.structure)

    def _way(self, known: Known, count: int, keywords: tuple[str, ...]) -> Way | None:
        """A way of passing arguments that was not seen before, with the kernels that fit it."""
        found = binding(self._served.signature, count, keywords)
        if found is None:
            return None
        names = tuple(all_values(dict.fromkeys(found.names), known.attributes, known.named))
        grouped: dict[Facts, list[Kernel]] = {}
        for kernel in known.kernels:
            if kernel.names == names:
                head = kernel.facts[: len(kernel.facts) - len(known.tail)]
                grouped.setdefault(head, []).append(kernel)
        with self._lock:
            sites = {facts: self._site(tuple(kernels)) for facts, kernels in grouped.items()}
        usable = {facts: site for facts, site in sites.items() if site is not None}
        return Way(binding=found, sites=usable) if usable else None

    def _site(self, kernels: tuple[Kernel, ...]) -> Site | None:
        """The site of these kernels, which is the same as long as it lives."""
        for known in self._sites:
            if known.kernels == kernels:
                return known
        site = self._served.site(kernels)
        if site is not None:
            self._sites.append(site)
        return site


def _is_judged(judged: Call, call: Call) -> bool:
    """Whether a call is the one that was judged, its program and its outputs included."""
    return (judged.words, judged.outputs) == (call.words, call.outputs)


def _words(found: Entered) -> Words:
    return tensor_words((a.value for a in found.arguments), tuple(map(spec_of, found.tensors)))


def _only_devices(tensor: Tensor) -> bool:
    """Whether nothing is in force but where new tensors are made, and that is where this one is."""
    modes = _get_current_function_mode_stack()
    return all(isinstance(m, DeviceContext) and m.device.type == tensor.device.type for m in modes)
