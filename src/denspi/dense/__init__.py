"""Vectors from text: the phrase model, its runtimes, the reader."""

import os

# From its import on, onnxruntime reports to its makers over the network and keeps files in the user's cache,
# unless this is set before. Nobody who asks their own documents expects that; 0 in the environment allows it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
