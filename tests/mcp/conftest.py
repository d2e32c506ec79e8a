"""The index of the service's tests."""

from tests.serve.conftest import built, own_index

__all__ = ["built", "own_index"]
