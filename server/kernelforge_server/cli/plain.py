"""Commands whose help names no type for a flag: typer would call `--help` a `<bool>`."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command."""

    def get_help_option(self, ctx: Any) -> Any:
        """The `--help` option, without a type."""
        return _untyped(super().get_help_option(ctx))


class PlainGroup(TyperGroup):
    """A command with commands below it."""

    def get_help_option(self, ctx: Any) -> Any:
        """The `--help` option, without a type."""
        return _untyped(super().get_help_option(ctx))


def _untyped(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option
