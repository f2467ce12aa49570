"""A command that can answer as a Nagios plug-in does."""

from typing import Any

import click

from commbench.cli import SaidError
from commbench.errors import CommbenchError

_UNKNOWN = 3


class NagiosCommand(click.Command):
    """With --nagios an error is UNKNOWN, in the one line: click's code 2 for bad usage is Nagios' CRITICAL."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        is_nagios = "--nagios" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            if is_nagios:
                raise _unknown(error.format_message()) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SaidError:
            raise
        except CommbenchError as error:
            if ctx.params["nagios"]:
                raise _unknown(str(error)) from error
            raise


def _unknown(message: str) -> SaidError:
    click.echo(f"COMMBENCH UNKNOWN - {' '.join(message.replace('|', '/').split())}")
    return SaidError(_UNKNOWN)
