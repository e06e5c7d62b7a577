"""The `kernelforge` command."""

from kernelforge_server.cli.app import app


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
