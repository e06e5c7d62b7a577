"""Regions of a running model: which there are, what they compute, and their example inputs.

    tracer = RegionTracer(model, device)
    with tracer.watching(), counting:  # a mode that calls tracer.step() after every operator
        model(...)
    found = tracer.results(seen_us)
    with RegionKeeper(tracer, wanted, keep):
        model(...)

Once the program of an instance is known for arguments of a kind, further calls are only counted.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.guard import Unguardable, schema_values, words
from kernelforge_engine.dispatch.instance import all_values
from kernelforge_engine.dispatch.program import Program
from kernelforge_engine.dispatch.recording import Recording, TooLong, flattened
from kernelforge_engine.dispatch.regions import describe_region, entered
from kernelforge_engine.worker.eligibility import tensors_in, unjudged
from kernelforge_engine.worker.glance import glance
from kernelforge_engine.worker.region_proof import prove, unobserved
from kernelforge_engine.worker.region_report import (
    ONE_OPERATOR,
    Found,
    Key,
    Place,
    RegionSeen,
    report,
)
from kernelforge_engine.worker.region_watch import Site, Values, Watch
from kernelforge_engine.worker.tensors import memory_of
from kernelforge_engine.worker.terms import reduction_length

__all__ = ["RegionKeeper", "RegionSeen", "RegionTracer"]

PATIENCE = 8  # calls of an instance, all refused, after which it is only counted
RECORDED = 2  # calls of an instance and kind: a counter in Python shows in the second one


@dataclass(frozen=True, kw_only=True, eq=False)
class Visit:
    """A call that has begun and not ended; `token` is what its end is told by."""

    token: object
    place: Place


@dataclass(kw_only=True, eq=False)
class Opened:
    """A visit whose program is being recorded, with the identities of its operators."""

    visit: Visit
    recording: Recording
    keys: list[Key] = field(default_factory=list)


class RegionTracer:
    """Finds the regions of one run: counts their calls, and records the first ones."""

    def __init__(self, model: object, device: torch.device) -> None:
        self.watch = Watch(model)
        self._device = device
        self._visits: list[Visit] = []
        self._open: list[Opened] = []
        self._places: list[Place] = []
        self._found: dict[Key, Found] = {}
        self._failed: dict[Key, str] = {}

    def watching(self) -> AbstractContextManager[None]:
        """Follow the run inside."""
        return self.watch.watching(self._begins, self._ends, pausing=True)

    def step(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """An operator has run."""
        if self._open:
            self._step(op, args, kwargs, output)
        self.watch.resume()

    def _step(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        try:
            key: Key = (op.name(), words(schema_values(op, args, kwargs))[0])
        except Unguardable:
            key = (op.name(), ())
        for opened in tuple(self._open):
            try:
                opened.recording.add(op, args, kwargs, output)
                opened.keys.append(key)
            except Unguardable as refused:
                self._refuse(opened, refused)

    def results(self, seen_us: Callable[[Key], float]) -> list[RegionSeen]:
        """Every region, targets first; `seen_us` gives the time of an operator by its key."""
        return report(self._places, self._found, seen_us)

    def place(self, site: Site, given: Mapping[str, Any]) -> Place:
        """What is known of calls with arguments like these.

        Raises:
            Unguardable: no guard can tell such a call from others.
        """
        sight = glance(None, tuple(given.values()), {})
        if sight is None:
            entered(given)  # which says why
            raise Unguardable(why="it has an argument that no guard can describe")
        return self._place(site, (sight, site.plain(), _sharing(site, given)), None)

    def _place(self, site: Site, mark: Hashable, reason: str | None) -> Place:
        known: Place | None = site.places.get(mark)
        if known is None:
            labels = [v.place.site.label for v in self._visits if v.place.site.label]
            module = site.label or (labels[-1] if labels else "")
            known = site.places[mark] = Place(site=site, module=module, reason=reason)
            self._places.append(known)
        return known

    def _begins(self, token: object, site: Site, values: Values) -> None:
        given: Mapping[str, Any] = {}
        place: Place | None = site.settled
        if place is None:
            try:
                given = values()
                place = self.place(site, given)
            except Unguardable as refused:
                if site.kind == "function":
                    site.misses += 1  # with more than tensors and plain values it is not meant
                    return
                place = self._place(site, str(refused), str(refused))
            self._settle(place, at=PATIENCE)
        place.calls += 1
        if self._visits:
            place.parents.add(self._visits[-1].place)
        visit = Visit(token=token, place=place)
        self._visits.append(visit)
        if place.reason is None and place.recorded < RECORDED:
            self._record(visit, given)

    def _settle(self, place: Place, at: int) -> None:
        """Look no more at an instance of which `at` calls were refused and none was recorded."""
        places = place.site.places.values()
        if place.calls >= at and place.reason and all(p.reason for p in places):
            place.site.settled = place

    def _record(self, visit: Visit, given: Mapping[str, Any]) -> None:
        try:
            values = all_values(given, *visit.place.site.owned())
            recording = Recording(entered(values), reduction_length)
        except Unguardable as refused:
            visit.place.reason = str(refused)
        else:
            self._open.append(Opened(visit=visit, recording=recording))

    def _refuse(self, opened: Opened, refused: Unguardable) -> None:
        opened.visit.place.reason = str(refused)
        self._open.remove(opened)
        if isinstance(refused, TooLong):
            self._settle(opened.visit.place, at=1)

    def _ends(self, token: object, output: Any) -> None:
        at = len(self._visits) - 1
        while at >= 0 and self._visits[at].token is not token:
            at -= 1
        if at < 0:
            return
        ended, gone = self._visits[at], self._visits[at:]  # an exception has left those above
        del self._visits[at:]
        if not self._open:
            return
        opened = [o for o in self._open if o.visit is ended]
        self._open = [o for o in self._open if o.visit not in gone]
        for recorded in opened:
            try:
                self._close(recorded, output)
            except Unguardable as refused:
                ended.place.reason = str(refused)
                if str(refused) == ONE_OPERATOR:
                    self._settle(ended.place, at=1)

    def _close(self, opened: Opened, output: Any) -> None:
        place, recording = opened.visit.place, opened.recording
        site = place.site
        if recording.computing < 2:
            raise Unguardable(why=ONE_OPERATOR)
        region = recording.region(output, kind=site.kind, owner=site.owner, source=site.source)
        outputs = tensors_in(output)
        with unobserved(self._device):
            call = describe_region(site.name, recording.given, outputs, region)
        key: Key = (call.operator, call.words)
        if place.key not in (None, key):
            raise Unguardable(why="its operators change from call to call")
        place.key = key
        place.recorded += 1
        if key not in self._found and key not in self._failed:
            with unobserved(self._device):
                self._try(opened, call, Program(region, len(call.inputs)), outputs)
        place.reason = self._failed.get(key)

    def _try(self, opened: Opened, call: Call, program: Program, outputs: list[Tensor]) -> None:
        recording, own = opened.recording, opened.visit.place.site.own
        tensors = recording.given.tensors
        memory = {i: memory_of(t) for i, t in enumerate(tensors) if id(t) in own}
        cost = unjudged([*tensors, *outputs]) or prove(
            program, tensors, memory, outputs, recording.computing
        )
        key: Key = (call.operator, call.words)
        if isinstance(cost, str):
            self._failed[key] = cost
        else:
            keys = tuple(opened.keys)
            self._found[key] = Found(call=call, keys=keys, cost=cost, memory=memory)


class RegionKeeper:
    """Calls `keep(key, tensors)` before each call of a wanted region that the tracer knows."""

    def __init__(
        self,
        tracer: RegionTracer,
        wanted: Collection[Hashable],
        keep: Callable[[Key, list[Tensor]], None],
    ) -> None:
        self._tracer, self._wanted, self._keep = tracer, wanted, keep
        self._watching: AbstractContextManager[None]

    def __enter__(self) -> "RegionKeeper":
        self._watching = self._tracer.watch.watching(
            self._begins, lambda _token, _output: None, pausing=False
        )
        self._watching.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watching.__exit__(kind, error, trace)

    def _begins(self, _token: object, site: Site, values: Values) -> None:
        try:
            given = values()
            place = self._tracer.place(site, given)
            if place.key is not None and place.reason is None and place.key in self._wanted:
                tensors = entered(all_values(given, *site.owned())).tensors
                with unobserved(tensors[0].device):
                    self._keep(place.key, list(tensors))
        except Unguardable:
            return


def _sharing(site: Site, given: Mapping[str, Any]) -> Hashable:
    """Which arguments are the same memory, or a parameter of the region itself."""
    tensors = [t for t in flattened(list(given.values())) if isinstance(t, Tensor)]
    own = tuple([i for i, t in enumerate(tensors) if id(t) in site.own])
    if len(tensors) < 2:
        return own
    places = [t.data_ptr() for t in tensors]
    if len(set(places)) == len(places):
        return own
    return own, tuple(places.index(place) for place in places)
