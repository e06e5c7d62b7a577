"""What the whole suite shares."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

ROOT = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _cuda():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def _no_library() -> Iterator[None]:
    """The library of whoever runs the tests is neither read nor added to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELFORGE_LIBRARY", "off")
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def user_projects() -> Path:
    return ROOT / "tests" / "user_projects"


Command = Callable[..., "subprocess.CompletedProcess[str]"]


def command_in(folder: Path) -> Command:
    """The real command in a process of its own, run from `folder`."""

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "kernelforge_server", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=240,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def command_of() -> Callable[[Path], Command]:
    """The real command, run from any folder."""
    return command_in


@pytest.fixture
def kernelforge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The real command, on a project of the test's own."""
    monkeypatch.setenv("KERNELFORGE_PROJECT", str(tmp_path / "project"))
    return command_in(tmp_path)


TRIES = 6  # on a busy machine a timing may be inconclusive

# Eager takes several operators for it, so this one is faster on any machine.
ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[(i + 1) % n] = x[i];
}
"""


@dataclass(frozen=True)
class Forged:
    """A folder with a project in .kernelforge, its one node in good.cast, and the names in it."""

    folder: Path
    run: Command
    variant: str
    no_target: str
    node: str


@pytest.fixture(scope="session")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Forged:
    folder = tmp_path_factory.mktemp("forged")
    run = command_in(folder)
    (folder / "roll.cpp").write_text(ROLL)
    (folder / "model.py").write_text(
        "import torch\n\n\ndef make_model():\n"
        "    return lambda x: torch.roll(x, 1) + torch.randn_like(x)\n\n\n"
        "def make_inputs():\n    return torch.ones(8, 8)\n"
    )
    rows = json.loads(run("capture", "model.py", "--json").stdout)["cards"]
    assert {row["operator"] for row in rows} >= {"aten::roll", "aten::randn_like"}
    cards = json.loads(run("cards", "--json").stdout)["cards"]
    ids = {card["operator"]: card["variants"][0]["id"] for card in cards}
    variant = ids["aten::roll"]
    node = _found_faster(run, variant)
    exported = run("export", "-o", "good.cast", "--node", node, "--no-measure")
    assert exported.returncode == 0, exported.stderr
    return Forged(folder, run, variant, ids["aten::randn_like"], node)


def _found_faster(run: Command, variant: str) -> str:
    """The node of roll.cpp, once a benchmark found it faster."""
    for _ in range(TRIES):
        evaluated = json.loads(run("evaluate", "--variant", variant, "roll.cpp", "--json").stdout)
        if evaluated["timing"]["outcome"] == "faster":
            return str(evaluated["node_id"])
    pytest.fail(f"roll.cpp was never found faster: {evaluated}")


@pytest.fixture(scope="session")
def sentence() -> Callable[..., str]:
    """What a command that failed said: one sentence with a next step, under --json a document."""

    def said(ended: "subprocess.CompletedProcess[str]", code: int) -> str:
        assert ended.returncode == code, ended
        assert "Traceback" not in ended.stdout + ended.stderr
        if ended.stdout:
            assert ended.stderr == ""
            text = str(json.loads(ended.stdout)["error"])
        else:
            assert ended.stderr.startswith("kernelforge: ")
            text = ended.stderr.removeprefix("kernelforge: ").removesuffix("\n")
        assert "\n" not in text
        assert re.fullmatch(r".+\. Next: \S.+\S", text), text
        return text

    return said


class Processes:
    """What runs below a process, as the kernel shows it."""

    def below(self, parent: int, words: str = "") -> list[int]:
        """Every living descendant whose command line contains `words`."""
        living = self._living()
        found, parents = [], {parent}
        while parents:
            parents = {pid for pid, (above, _) in living.items() if above in parents}
            found += [pid for pid in parents if words in living[pid][1]]
        return sorted(found)

    def parent(self, pid: int) -> int:
        """What started a process."""
        return self._living()[pid][0]

    def _living(self) -> dict[int, tuple[int, str]]:
        living = {}
        for folder in Path("/proc").glob("[0-9]*"):
            if found := self._shown(int(folder.name)):
                living[int(folder.name)] = found
        return living

    def _shown(self, pid: int) -> tuple[int, str] | None:
        """The parent and the command line of a process; None where it does not live."""
        folder = Path(f"/proc/{pid}")
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state in "ZX" else (int(parent), words)

    async def appears(
        self, words: str, *, parent: int | None = None, but: int = 0, holding: str = ""
    ) -> int:
        """The first descendant with `words`, other than `but`, as soon as there is one; it has a
        file mapped whose name contains `holding`."""
        with anyio.fail_after(60):
            while True:
                for pid in self.below(parent or os.getpid(), words):
                    if pid != but and holding in self.maps(pid):
                        return pid
                await anyio.sleep(0.005)

    def maps(self, pid: int) -> str:
        """The files and memory a process has mapped; empty when it is gone."""
        try:
            return Path(f"/proc/{pid}/maps").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""

    async def let_go(self, words: str, holding: str) -> None:
        """Wait until no descendant with `words` has such a file mapped: some are on their way out
        when their work is told."""
        with anyio.fail_after(60):
            while any(holding in self.maps(p) for p in self.below(os.getpid(), words)):  # noqa: ASYNC110
                await anyio.sleep(0.01)

    async def kill(self, pid: int) -> None:
        """Send SIGKILL and wait for the end."""
        os.kill(pid, signal.SIGKILL)
        await self.gone([pid])

    async def gone(self, pids: list[int]) -> None:
        """Wait until none of these runs any more."""
        with anyio.fail_after(60):
            while any(map(self._shown, pids)):  # noqa: ASYNC110  processes set no event
                await anyio.sleep(0.01)


@pytest.fixture(scope="session")
def processes() -> Processes:
    return Processes()


@pytest.fixture
def python_command() -> list[str]:
    """The start of every command line of ours."""
    return [sys.executable, "-m", "kernelforge_server"]
