"""Every failure of ours, as a tree; a candidate's failure is a verdict and never appears here.

KernelForgeError
├── UsageError            the request cannot be carried out as written (exit code 2)
│   ├── FileMissing, ImportFailed, FactoryMissing, FactoryFailed, InputsRejected
│   ├── ModuleMissing, ModuleFailed, PackageMissing, NotCached, ModelUnusable, InputsUnusable
│   ├── UnknownId (NoCapture), StaleLease, BadOption, NotATarget,
│   │   NothingToExport (ModelNotFaster),
│   │   CaptureHoldsWork, KeyReused
│   ├── NoCompiler, NoDevice, NotIsolated
│   ├── CastRejected (CastUntrusted), CastsConflict, KeyUnusable, SigningMissing
│   └── NoLibrary, NothingToKeep, LibraryFull, NoProject
└── WorkFailed            the request was fine and the work did not finish (exit code 1)
    ├── ModelRaised, ModelNotMeasured, CaptureEmpty
    ├── ChildDied, ChildTimedOut, ChildRefused, QueueFull
    ├── StoreUnavailable, QuotaReached, SchemaTooNew, ExampleLost, NotWritten
    ├── LibraryUnusable
    ├── ShimUnusable, NotInstalled, NotLaunched
    ├── NotProfiled
    └── MeasurementFailed (NodeInvalid)

The docstring of a class is its message: one sentence on what happened, then ``Next:`` and the step
that mends it. ``{fields}`` are filled from the keyword arguments of the raise.
"""

import inspect


class KernelForgeError(Exception):
    """Kernel Forge could not do the work. Next: check which devices are usable, then try again."""

    exit_code = 1

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(" ".join(inspect.cleandoc(self.__doc__ or "").format(**fields).split()))


class UsageError(KernelForgeError):
    """The request cannot be carried out: {why}. Next: {step}."""

    exit_code = 2


class FileMissing(UsageError):
    """There is no readable file at {path}. Next: check the path and the folder you run from."""


class FactoryMissing(UsageError):
    """{file} defines no function {name}(). Next: add `def {name}():` at its top level, or say which
    of its functions to call instead."""


class ImportFailed(UsageError):
    """{file} cannot be imported: {error}. Next: make `python {file}` work by itself, then run this
    again."""


class FactoryFailed(UsageError):
    """{name}() in {file} {what}. Next: make `python {file}` plus a call of {name}() work
    by itself, then run this again."""


class InputsRejected(UsageError):
    """{field} from {source} cannot be used: {why}. Next: {step}."""


class ModuleMissing(UsageError):
    """There is no module {module} to import. Next: run from the folder that holds it, install it,
    or name a file as FILE.py:make_model or a model as hf:org/name."""


class ModuleFailed(UsageError):
    """The module {module} cannot be imported: {error}. Next: make `python -m {module}` work by
    itself, then run this again."""


class PackageMissing(UsageError):
    """{what} needs the package {package}, which is not installed. Next: pip install {package}, or
    install kernelforge-mcp[hf]."""


class NotCached(UsageError):
    """{name} is not in the local Hugging Face cache, and nothing is downloaded from here. Next: run
    `hf download {name}`, or name a local folder as hf:./FOLDER, or use --random-weights with a
    configuration as hf:config.json."""


class ModelUnusable(UsageError):
    """The model {model} cannot be loaded: {why}. Next: {step}."""


class InputsUnusable(UsageError):
    """The inputs {entry} cannot be used: {why}. Next: {step}."""


class UnknownId(UsageError):
    """There is no {kind} {value!r} in this project. Next: {step}."""


class NoCapture(UnknownId):
    """This project holds no capture yet. Next: capture a model first, from a FILE.py that defines
    make_model() and make_inputs(), or choose the project that has one."""


class StaleLease(UsageError):
    """Lease {lease} has {why}. Next: call mcts_select for variant {variant} and submit under the
    new lease."""


class BadOption(UsageError):
    """{field} = {value!r} is not accepted: {why}. Next: use {accepted}."""


class CaptureHoldsWork(UsageError):
    """Capture {capture} is the only one with the variants of {nodes}, which would go with it. Next:
    export what is worth keeping, then remove the capture with --force."""


class KeyReused(UsageError):
    """The key {key!r} stands for another report, {usage}, and nothing was counted. Next: give every
    report a key of its own, and repeat a key only to repeat its call."""


class NotATarget(UsageError):
    """Variant {variant} is not a target: {why}. Next: choose one that the cards show as a
    target."""


class NothingToExport(UsageError):
    """No node of this project was found faster than eager, so there is nothing to export. Next:
    benchmark again what was inconclusive on a busy machine, or submit more candidates."""


class ModelNotFaster(NothingToExport):
    """The kernels are faster than eager by themselves, but the model is slower with them: {why}.
    Next: submit and benchmark other candidates, or keep these with --keep-all (keep_all=true)."""


class NoCompiler(UsageError):
    """No {compiler} was found for the {backend} backend. Next: {step}."""


class NoDevice(UsageError):
    """No {device} device can be used here: {why}. Next: use the device cpu, or a machine with
    an NVIDIA GPU and a CUDA build of torch."""


class NotIsolated(UsageError):
    """A candidate could still {deeds} on this machine ({level}), and KERNELFORGE_REQUIRE_SANDBOX
    forbids to run one then. Next: use Linux 5.13 or newer with Landlock and seccomp (a container
    may withhold them), or unset that variable where all candidates are trusted."""


class CastRejected(UsageError):
    """{path} is not a cast that can be used: {why}. Next: {step}."""


class CastUntrusted(CastRejected):
    """{path} is not from anyone who is trusted here: {why}. Next: {step}."""


class CastsConflict(UsageError):
    """{first} and {second} have different kernels for {call}: {why}. Next: say which one to keep,
    with --prefer {first} or --prefer {second}."""


class KeyUnusable(UsageError):
    """The key {key} cannot be used: {why}. Next: {step}."""


class SigningMissing(UsageError):
    """{what} needs the package cryptography, which is not installed. Next: pip install
    'kernelforge-mcp[sign]'."""


class NoLibrary(UsageError):
    """The library of accepted kernels is switched off here. Next: unset KERNELFORGE_LIBRARY=off, or
    let that variable name a folder."""


class NothingToKeep(UsageError):
    """{path} holds no kernel that the library could keep: none was found faster than eager, or all
    are of the built-in library. Next: add a cast with kernels that an agent or you wrote."""


class LibraryFull(UsageError):
    """The library {path} takes no more: {why}. Next: remove kernels that are not worth keeping with
    `kernelforge library remove`, or choose another folder with KERNELFORGE_LIBRARY."""


class NoProject(UsageError):
    """There is no project in {path}. Next: name the folder that `kernelforge capture` made, called
    .kernelforge unless --project said otherwise."""


class WorkFailed(KernelForgeError):
    """The work stopped: {why}. Next: {step}."""


class ModelRaised(WorkFailed):
    """The model raised {error} when it was run on its example inputs. Next: run it on them by
    itself and mend what it reports, or give other inputs."""


class ModelNotMeasured(WorkFailed):
    """The captured model {model} was not measured with these kernels: {why}. Next: mend that, or
    export with --no-measure (measure=false), which leaves open whether they make it faster."""


class CaptureEmpty(WorkFailed):
    """The model ran but called no operator that could be captured. Next: check that its forward
    works on tensors and in the calling thread."""


class ChildDied(WorkFailed):
    """The {role} process ended with {status} while it was asked to {task}; its last words: {words}.
    Next: run the same call again; it starts a fresh process."""


class ChildTimedOut(WorkFailed):
    """The {role} process did not {task} within {seconds:.0f} s and was stopped. Next: try again on
    an idle machine, or with smaller inputs."""


class ChildRefused(WorkFailed):
    """The {role} process could not {task}: {error}. Next: run the same call again, and report
    it with this text if it fails again and the input was fine."""


class JobElsewhere(UsageError):
    """Job {job} runs in another server on this project. Next: cancel it there, or call wait_job
    with job_id {job}."""


class QueueFull(WorkFailed):
    """{most} jobs run or wait already, and no more are taken. Next: call wait_job for one of them,
    or end one with cancel_job, then make this call again."""


class DeviceUnwell(WorkFailed):
    """The device {device} does not compute as it should: {why}. Nothing is judged or timed on it
    until it does. Next: look at nvidia-smi and the system's log, end what else runs on it or reset
    it, and run the same call again; the engine tries it before every verdict."""


class StoreUnavailable(WorkFailed):
    """The project folder {path} cannot be written: {why}. Next: free space or fix its permissions,
    or choose another folder with --project."""


class QuotaReached(StoreUnavailable):
    """The project folder {path} is full: its quota is {quota} bytes, and {need} did not fit.
    Next: raise KERNELFORGE_QUOTA_BYTES, or choose another folder with --project."""


class ExampleLost(WorkFailed):
    """The example tensor {path} cannot be read: {why}. Next: delete that file if it is there, and
    capture the model again."""


class NotWritten(WorkFailed):
    """{what} cannot be written to {path}: {why}. Next: {step}."""


class SchemaTooNew(WorkFailed):
    """The project folder {path} was written by a newer Kernel Forge (schema {found}, this one knows
    {known}). Next: upgrade kernelforge-mcp, or choose another folder with --project."""


class LibraryUnusable(WorkFailed):
    """The library of accepted kernels at {path} cannot be {done}: {why}. Next: mend that, choose
    another folder with KERNELFORGE_LIBRARY, or work without one with KERNELFORGE_LIBRARY=off."""


class ShimUnusable(WorkFailed):
    """The dispatch shim does not work with torch {torch}: {why}. Next: delete {path} and try again;
    if it fails again, report it with this text, and set KERNELFORGE_DISABLE=1 meanwhile."""


class NotInstalled(WorkFailed):
    """{what} cannot take the place of eager in this process: {why}. Next: import the library that
    defines the operator first, or use the cast on the kind of device it was made for."""


class NotLaunched(WorkFailed):
    """Kernel Forge could not run its kernel for {name}: {why}. Next: set KERNELFORGE_DISABLE=1 to
    run without the cast, and report this."""


class NotProfiled(WorkFailed):
    """The kernels of {what} cannot be loaded on the device to profile them: {why}. Next: benchmark
    the node, which says whether it still runs here, and try again when nothing else uses the
    device."""


class MeasurementFailed(WorkFailed):
    """The timing of {what} is not usable: {why}. Next: run it again on an idle machine."""


class NodeInvalid(MeasurementFailed):
    """Node {node} is not valid any more: {why}. Next: call mcts_select for its variant, revise the
    source and submit it under the new lease."""
