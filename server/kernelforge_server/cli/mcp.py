"""`kernelforge mcp`: the tool server over standard input and output."""

from kernelforge_engine.errors import KernelForgeError
from kernelforge_server import settings
from kernelforge_server.cli.options import ProjectOption
from kernelforge_server.cli.session import Session


def mcp(project: ProjectOption = None) -> None:
    """Serve the tools to an MCP client over standard input and output."""
    # The SDK takes longer to import than all the rest, and no other command needs it.
    from kernelforge_server.app import serve

    try:
        serve(settings.resolve(project))
    except KernelForgeError as error:
        Session(project=project, as_json=False).fail(error)
