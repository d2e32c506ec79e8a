"""The wheel, built without a network, carries everything that an installed denspi needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import denspi


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_every_file_of_the_package_is_inside(root: Path, wheel: zipfile.ZipFile) -> None:
    package = root / "src" / "denspi"
    files = {
        path.relative_to(root / "src").as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"denspi/py.typed", "denspi/cli/__init__.py"} <= files
    assert files <= set(wheel.namelist())
    assert any(name.startswith("denspi/sample/") and not name.endswith(".py") for name in wheel.namelist())


def test_metadata(wheel: zipfile.ZipFile) -> None:
    (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    metadata = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert metadata["Version"] == denspi.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
    core = [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert not [text for text in core if text.startswith(("torch", "transformers"))]
    assert {"corpus", "train", "serve", "cluster", "dev"} <= set(metadata.get_all("Provides-Extra", []))
    assert b"denspi = denspi.__main__:main" in wheel.read(f"{folder}/entry_points.txt")
