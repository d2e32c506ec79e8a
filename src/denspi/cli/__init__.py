"""The command line: one module per command, each of which parses, calls one function and prints.

This module owns the list of commands and the way they fail: whatever the user can put right is one line on
standard error and exit code 2, and only a fault of denspi itself shows a traceback. Nothing heavy is imported
here or at the top of a command's module, so that ``denspi --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from denspi import DenspiError, __version__
from denspi.cli.asking import ask_command
from denspi.cli.corpus import corpus_command
from denspi.cli.demo import demo_command
from denspi.cli.evaluate import evaluate_app
from denspi.cli.indexing import add_command, index_command, update_command
from denspi.cli.maintenance import (
    delete_command,
    info_command,
    merge_command,
    refit_command,
    verify_command,
)
from denspi.cli.plan import plan_command
from denspi.cli.serving import mcp_command, serve_command
from denspi.cli.train import train_command
from denspi.cli.wording import without_controls
from denspi.errors import StoppedError

EXIT_BAD_USE = 2
EXIT_BROKEN_PIPE = 1
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="denspi",
    help="Exact, sourced answers from your own documents.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("corpus")(corpus_command)
app.command("index")(index_command)
app.command("add")(add_command)
app.command("update")(update_command)
app.command("delete")(delete_command)
app.command("merge")(merge_command)
app.command("refit")(refit_command)
app.command("info")(info_command)
app.command("verify")(verify_command)
app.command("ask")(ask_command)
app.command("serve")(serve_command)
app.command("mcp")(mcp_command)
app.command("demo")(demo_command)
app.add_typer(evaluate_app, name="evaluate")
app.command("train")(train_command)
app.command("plan")(plan_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"denspi {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (`sys.argv` by default) and return its exit code; a bug is raised instead."""
    try:
        returned = app(args=arguments, prog_name="denspi", standalone_mode=False)
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
    except typer.TyperException as error:
        return _fail(_usage_line(error))
    except StoppedError as error:
        return _fail(str(error), EXIT_INTERRUPTED)
    except (DenspiError, typer.Abort) as error:
        return _fail(str(error) or "stopped")
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        return _fail(_system_line(error))
    exit_code = returned if isinstance(returned, int) else 0
    if exit_code == EXIT_INTERRUPTED:  # typer catches the interrupt and hands back its exit code
        return _fail("interrupted", EXIT_INTERRUPTED)
    return exit_code


def main() -> NoReturn:
    """The ``denspi`` command."""
    sys.exit(run())


def _fail(message: str, exit_code: int = EXIT_BAD_USE) -> int:
    typer.echo("denspi: " + " ".join(without_controls(message).split()), err=True)
    return exit_code


def _usage_line(error: typer.TyperException) -> str:
    """What is wrong with the command line and where to read how it is meant."""
    finding = error.format_message().rstrip()
    if not finding.endswith((".", "?", "!")):
        finding += "."
    context = getattr(error, "ctx", None)
    return f"{finding} See '{context.command_path if context else 'denspi'} --help'."


def _system_line(error: OSError) -> str:
    """A full disk or a missing permission, with the file where the system names one."""
    finding = error.strerror or str(error)
    return f"{error.filename}: {finding}" if error.filename else finding


def _silence_stdout() -> None:
    """Send what is left to nowhere: the reader (``| head``) has gone, and the flush at exit must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
