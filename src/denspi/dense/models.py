"""From a model's name to an encoder: packaged models by name, others by folder, whichever runtime they need.

torch is imported only for a folder that holds a trained torch model.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.runtime_folder import PHRASE_KIND, kind_of
from denspi.errors import MissingExtraError, ModelError

_PREFIX = "denspi-"
_TORCH_KIND = "phrase"
# Enough windows for full batches on a GPU; they are sorted by length within these.
_GPU_WINDOWS = WindowSettings(batch=512)


def packaged_models() -> dict[str, Path]:
    """The models that come with this installation, by name: ``small`` is ``models/denspi-small``."""
    folder = Path(str(files("denspi"))) / "models"
    found = sorted(folder.glob(f"{_PREFIX}*/")) if folder.is_dir() else []
    return {path.name.removeprefix(_PREFIX): path for path in found}


def find_model(name: str) -> Path:
    """The folder of a packaged model, or the folder that `name` is a path to."""
    packaged = packaged_models()
    if name in packaged:
        return packaged[name]
    path = Path(name)
    try:
        if path.is_dir():
            return path
    except OSError as error:  # a name longer than the system takes, for one
        raise ModelError(f"{name[:100]}...: cannot be a model folder ({error.strerror})") from None
    names = ", ".join(packaged) or "none in this installation"
    raise ModelError(f"{name}: there is no such model; packaged models: {names}; or pass a model folder")


def open_encoder(folder: Path) -> PhraseEncoder:
    """The encoder of a model folder: exported (onnxruntime) or trained (torch, on a GPU if there is one)."""
    kind = kind_of(folder)
    if kind == PHRASE_KIND:
        from denspi.dense.onnx_encoder import load_encoder

        return load_encoder(folder)
    if kind == _TORCH_KIND:
        return _open_torch(folder)
    raise ModelError(f"{folder}: holds a model of kind {kind!r}; expected {PHRASE_KIND!r} or {_TORCH_KIND!r}")


def _open_torch(folder: Path) -> PhraseEncoder:
    try:
        import torch

        from denspi.dense.model_folder import load_phrase_model
        from denspi.dense.torch_encoder import torch_encoder
    except ImportError:
        raise MissingExtraError(f"{folder}: a model that is not exported", "train") from None
    from denspi.text.tokens import Tokenizer

    model = load_phrase_model(folder)
    on_gpu = torch.cuda.is_available()
    tokenizer = Tokenizer(folder / "tokenizer.json")
    return torch_encoder(model.to("cuda" if on_gpu else "cpu"), tokenizer, _GPU_WINDOWS if on_gpu else None)
