"""TOML -> dataclasses: what is wrong is said in one line that names the file, the key and the way out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from denspi.errors import SettingsError
from denspi.settings import load_settings


@dataclass(frozen=True)
class Engine:
    cylinders: int = 4
    fuel: Literal["petrol", "diesel"] = "petrol"
    power: float = 1.0

    def __post_init__(self) -> None:
        if self.cylinders < 1:
            raise ValueError("cylinders are positive")


@dataclass(frozen=True)
class Car:
    name: str
    engine: Engine = field(default_factory=Engine)
    log: Path | None = None
    seats: tuple[int, ...] = ()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "car.toml"
    path.write_text('name = "tin"\nlog = "car.log"\nseats = [2, 3]\n[engine]\ncylinders = 2\npower = 3\n')
    return path


def test_values_defaults_and_nested_tables(config: Path) -> None:
    assert load_settings(config, Car) == Car("tin", Engine(2, "petrol", 3.0), Path("car.log"), (2, 3))


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("engine.cylinders=8", Engine(8, power=3.0)),
        ("engine.fuel=diesel", Engine(2, "diesel", 3.0)),  # a bare word is a string
        ('engine.fuel = "diesel"', Engine(2, "diesel", 3.0)),
        ("engine.power=0.5", Engine(2, power=0.5)),
    ],
)
def test_overrides_replace_single_keys(config: Path, override: str, expected: Engine) -> None:
    assert load_settings(config, Car, [override]).engine == expected


def test_an_override_may_open_a_table_and_the_last_one_counts(tmp_path: Path) -> None:
    (tmp_path / "car.toml").write_text('name = "tin"')
    changed = load_settings(tmp_path / "car.toml", Car, ["engine.cylinders=8", "engine.cylinders=6"])
    assert changed == Car("tin", Engine(6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "tin"\nengin = 1', "unknown key 'engin'; did you mean 'engine'?"),
        ('name = "tin"\nzzz = 1', "unknown key 'zzz'; known: engine, log, name, seats"),
        ('name = "tin"\n[engine]\nfuell = 1', "unknown key 'engine.fuell'; did you mean 'fuel'?"),
        ("[engine]\ncylinders = 2", "key 'name' is missing"),
        ("name = 3", "'name' is 3; expected str"),
        ('name = "tin"\n[engine]\ncylinders = true', "'engine.cylinders' is True; expected int"),
        ('name = "tin"\n[engine]\npower = "much"', "'engine.power' is 'much'; expected float"),
        (
            'name = "tin"\n[engine]\nfuel = "coal"',
            "'engine.fuel' is 'coal'; choose one of 'petrol', 'diesel'",
        ),
        ('name = "tin"\n[engine]\npower = nan', "'engine.power' is nan; expected a finite number"),
        ('name = "tin"\n[engine]\npower = -inf', "'engine.power' is -inf; expected a finite number"),
        ('name = "tin"\nengine = 3', "'engine' must be a table"),
        ('name = "tin"\nseats = 3', "'seats' must be a list"),
        ('name = "tin"\nseats = [1, "x"]', "'seats[1]' is 'x'; expected int"),
        ('name = "tin"\n[engine]\ncylinders = 0', "engine: cylinders are positive"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "car.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, Car)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("engine", "'engine': an override is written key=value"),
        ("name.first=1", "'name.first=1': 'name' is not a table"),
        ("engine.fuell=1", "unknown key 'engine.fuell'"),
        ("engine.cylinders=many", "'engine.cylinders' is 'many'; expected int"),
    ],
)
def test_a_bad_override_is_one_line(config: Path, override: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(config, Car, [override])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no such file"):
        load_settings(tmp_path / "none.toml", Car)
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path, Car)
    (tmp_path / "bad.toml").write_text("name: tin")
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(tmp_path / "bad.toml", Car)
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(tmp_path / "latin.toml", Car)
