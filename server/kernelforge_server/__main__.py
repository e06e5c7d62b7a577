"""The `kernelforge` command."""

import json
import sys

import typer

from kernelforge_server.cli.app import app

USAGE = 2


def main() -> None:
    """Run the command line; with `--json` a wrong one is answered by a document too."""
    if "--json" not in sys.argv[1:]:
        app()
        return
    try:
        code = typer.main.get_command(app).main(standalone_mode=False)
    except typer.TyperException as error:
        typer.echo(json.dumps({"error": _sentence(error.format_message())}, ensure_ascii=False))
        code = USAGE
    sys.exit(code or 0)


def _sentence(message: str) -> str:
    words = " ".join(message.split()).rstrip(".")
    return f"{words}. Next: see the command's --help."


if __name__ == "__main__":
    main()
