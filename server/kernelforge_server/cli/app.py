"""The command line, put together."""

import typer

from kernelforge_server.cli.agent import agent
from kernelforge_server.cli.capture import capture
from kernelforge_server.cli.captures import captures
from kernelforge_server.cli.cards import cards
from kernelforge_server.cli.cast import cast
from kernelforge_server.cli.demo import demo
from kernelforge_server.cli.doctor import doctor
from kernelforge_server.cli.evaluate import evaluate
from kernelforge_server.cli.explain import explain
from kernelforge_server.cli.export import export
from kernelforge_server.cli.install import install
from kernelforge_server.cli.library import library
from kernelforge_server.cli.mcp import mcp
from kernelforge_server.cli.measure import measure
from kernelforge_server.cli.optimize import optimize
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.profile_node import profile
from kernelforge_server.cli.replay import replay
from kernelforge_server.cli.report import report
from kernelforge_server.cli.serve import serve
from kernelforge_server.cli.tree import tree

app = typer.Typer(
    name="kernelforge",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Make a real PyTorch model faster, safely: capture it, revise kernels, export winners.",
    epilog="Exit codes: 0 done, 1 failed, 2 not possible as written, 3 nothing was faster.",
)

for command in (
    demo, capture, cards, optimize, evaluate, explain, profile, tree, replay, export, measure,
    report, mcp, serve, install, doctor,
):  # fmt: skip
    app.command(cls=PlainCommand)(command)
app.add_typer(agent, name="agent")
app.add_typer(captures, name="captures")
app.add_typer(cast, name="cast")
app.add_typer(library, name="library")
