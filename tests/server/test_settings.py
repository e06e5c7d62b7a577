"""Where things are, and what children may see."""

from pathlib import Path

from kernelforge_server import settings


def test_an_option_wins_over_the_environment_and_that_over_the_default(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    chosen = {"KERNELFORGE_PROJECT": "/projects/one"}
    assert settings.resolve(Path("here"), chosen).project == tmp_path / "here"
    assert settings.resolve(None, chosen).project == Path("/projects/one")
    assert settings.resolve(None, {}).project == tmp_path / ".kernelforge"


def test_the_cache_follows_the_usual_variables():
    assert settings.resolve(None, {"KERNELFORGE_CACHE": "/c"}).cache == Path("/c")
    assert settings.resolve(None, {"XDG_CACHE_HOME": "/x"}).cache == Path("/x/kernelforge")


def test_the_library_follows_the_usual_variables_and_can_be_switched_off(tmp_path):
    chosen = settings.resolve(None, {"KERNELFORGE_LIBRARY": str(tmp_path)})
    assert chosen.library == tmp_path
    assert settings.library({"XDG_DATA_HOME": "/d"}) == Path("/d/kernelforge/library")
    assert settings.library({}) == Path.home() / ".local" / "share" / "kernelforge" / "library"
    assert settings.library({"KERNELFORGE_LIBRARY": "off"}) is None


def test_children_see_what_they_need_and_no_credential():
    seen = settings.child_environment({
        "PATH": "/usr/bin", "HOME": "/home/u", "CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "2",
        "HF_HUB_OFFLINE": "1", "HF_TOKEN": "secret", "ANTHROPIC_API_KEY": "secret", "EDITOR": "vi",
    })  # fmt: skip
    assert set(seen) == {
        "PATH", "HOME", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "HF_HUB_OFFLINE",
    }  # fmt: skip
    assert seen["PATH"].endswith(":/usr/bin")
