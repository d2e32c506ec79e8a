"""TOML -> frozen dataclasses. Owns the rule that an unknown key or a value of another type is an error.

Knows no particular settings: each stage keeps its own dataclass beside its code.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from denspi.errors import SettingsError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def load_settings(path: Path, kind: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a TOML file into `kind`, a frozen dataclass whose fields may be dataclasses themselves.

    Each override is ``dotted.key=value``, the value as TOML writes it; a bare word counts as a string.
    """
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML ({error})") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    for override in overrides:
        _override(table, override)
    try:
        return from_table(kind, table)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise SettingsError(f"{override!r}: an override is written key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, name = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise SettingsError(f"{override!r}: {parent!r} is not a table")
    table[name] = value


def from_table(kind: type[T], table: dict[str, Any], where: str = "") -> T:
    """Build the dataclass `kind` from plain values; `where` names the enclosing table in messages."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in table:
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(fields))}"
            raise SettingsError(f"unknown key {where + key!r}; {advice}")
    for name, field in fields.items():
        if name not in table and field.default is field.default_factory is dataclasses.MISSING:
            raise SettingsError(f"key {where + name!r} is missing")
    values = {key: _convert(hints[key], value, where + key) for key, value in table.items()}
    try:
        return kind(**values)
    except ValueError as error:  # a dataclass checks its own ranges
        raise SettingsError(f"{where.rstrip('.') or 'settings'}: {error}") from None


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise SettingsError(f"{where!r} must be a table")
        return from_table(typing.cast(type, hint), value, where + ".")
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise SettingsError(f"{where!r} is {value!r}; choose one of {', '.join(map(repr, choices))}")
        return value
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        if not isinstance(value, list):
            raise SettingsError(f"{where!r} must be a list")
        return tuple(_convert(item, v, f"{where}[{n}]") for n, v in enumerate(value))
    if isinstance(hint, types.UnionType):  # T | None; TOML has no null, so a value that is there is a T
        return _convert(typing.get_args(hint)[0], value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, float) and not math.isfinite(value):  # TOML has inf and nan
        raise SettingsError(f"{where!r} is {value!r}; expected a finite number")
    if hint is Path and isinstance(value, str):
        return Path(value)
    if type(value) is not hint:
        raise SettingsError(f"{where!r} is {value!r}; expected {getattr(hint, '__name__', hint)}")
    return value
