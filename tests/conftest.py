"""What the whole suite shares."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def user_projects() -> Path:
    return ROOT / "tests" / "user_projects"


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def kernelforge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The real command in a process of its own, on a project of the test's own."""
    monkeypatch.setenv("KERNELFORGE_PROJECT", str(tmp_path / "project"))

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "kernelforge_server", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=240,
            check=False,
        )

    return run


@pytest.fixture
def python_command() -> list[str]:
    """The start of every command line of ours."""
    return [sys.executable, "-m", "kernelforge_server"]
