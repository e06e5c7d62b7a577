"""How clients find us: every manifest names this version, this command and these texts."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from kernelforge_engine import __version__
from kernelforge_server.clients import CLIENTS, entry_of, merged
from kernelforge_tools import guide, plugin
from kernelforge_tools.registry import tools

ROOT = Path(__file__).parent.parent.parent
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
README = (ROOT / "README.md").read_text("utf-8")
COMMAND = ["kernelforge", "mcp"]


def read(name):
    return json.loads((ROOT / name).read_text("utf-8"))


def test_every_manifest_names_the_version_of_the_package():
    registry = read("server.json")
    assert {
        read("plugin/.claude-plugin/plugin.json")["version"],
        read(".claude-plugin/marketplace.json")["plugins"][0]["version"],
        read("bundle/manifest.json")["version"],
        registry["version"],
        registry["packages"][0]["version"],
    } == {__version__}


@pytest.mark.parametrize("name", plugin.texts())
def test_what_the_plugin_says_is_made_from_the_guide(name):
    text = (ROOT / "plugin" / name).read_text("utf-8")
    assert text == plugin.texts()[name], "make plugin"
    assert guide.LOOP.strip() in text


def test_the_plugin_lets_nothing_run_unasked_that_does_more_than_look_things_up():
    head = plugin.texts()["skills/optimize-model/SKILL.md"].split("---")[1]
    allowed = set(re.findall(rf"{plugin.PREFIX}([a-z_]+)", head))
    assert {"list_cards", "get_card", "wait_job"} <= allowed
    assert not allowed & {"capture_model", "compile_and_validate", "benchmark", "export_cast"}
    assert allowed <= {tool.name for tool in tools()}


def test_the_plugin_starts_what_install_would_write():
    entry = entry_of(CLIENTS["claude-code"], COMMAND)
    assert read("plugin/.mcp.json") == {"mcpServers": {"kernelforge": entry}}


def test_the_registry_finds_the_package_and_the_package_the_registry():
    described = read("server.json")
    (package,) = described["packages"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", described["name"])
    assert f"<!-- mcp-name: {described['name']} -->" in README
    assert len(described["description"]) <= 100
    assert package["identifier"] == PACKAGE["name"]
    assert package["identifier"] in PACKAGE["scripts"], "uvx starts a script of that name"
    assert [a["value"] for a in package["packageArguments"]] == ["mcp"]


def test_the_bundle_holds_what_the_package_is_built_from(tmp_path):
    target = tmp_path / "kernelforge.mcpb"
    subprocess.run([sys.executable, ROOT / "bundle" / "build.py", target], check=True)
    with ZipFile(target) as bundle:
        names = bundle.namelist()
        bundle.extractall(tmp_path)
    assert not [name for name in names if name.endswith("/")]
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert (tmp_path / manifest["server"]["entry_point"]).is_file()
    wheel = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]
    for package in wheel["build"]["targets"]["wheel"]["packages"]:
        assert (tmp_path / package / "__init__.py").is_file()
    for kept in (PACKAGE["readme"], *PACKAGE["license-files"]):
        assert (tmp_path / kept).is_file()


@pytest.mark.parametrize("name", CLIENTS)
def test_the_readme_shows_what_install_writes(name):
    client = CLIENTS[name]
    file = next(iter(client.files.values()))
    wanted = merged(Path("nowhere") / file, client, COMMAND)
    if file.endswith(".toml"):
        shown = re.findall(r"```toml\n(\[mcp_servers.*?)```", README, re.DOTALL)
        assert tomllib.loads(wanted) in [tomllib.loads(text) for text in shown]
    else:
        shown = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
        assert json.loads(wanted) in [json.loads(text) for text in shown]
