"""Every command has help and its section in docs/cli.md, which names every option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from denspi.cli import app

ROOT_COMMAND = typer.main.get_command(app)
COMMANDS = sorted(ROOT_COMMAND.commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_help_and_a_section(name: str, root: Path) -> None:
    command = ROOT_COMMAND.commands[name]  # type: ignore[attr-defined]
    assert command.help, f"denspi {name} has no help"
    section = _section((root / "docs" / "cli.md").read_text(encoding="utf-8"), name)
    for each in (command, *getattr(command, "commands", {}).values()):
        assert each.help, f"denspi {name} {each.name} has no help"
        for parameter in each.params:
            if parameter.param_type_name == "option":
                assert parameter.help, f"denspi {name} {parameter.opts[0]}: no help"
                option = max(parameter.opts, key=len)
                assert f"`{option}" in section, f"docs/cli.md does not name {option}"


def test_the_reference_names_no_other_command(root: Path) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^## `denspi (\w+)", page, flags=re.MULTILINE)) == COMMANDS


def _section(page: str, name: str) -> str:
    found = re.search(rf"^## `denspi {name}\b.*?(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section for denspi {name}"
    return found[0]
