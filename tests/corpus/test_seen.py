from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus.seen import SeenIds


@given(st.lists(st.sampled_from("abcdefghijkl")), st.integers(1, 5))
def test_like_a_dictionary(ids: list[str], buffered_ids: int) -> None:
    seen = SeenIds(buffered_ids)
    first_places: dict[str, int] = {}
    for place, document_id in enumerate(ids):
        assert seen.add(document_id, place) == first_places.get(document_id)
        first_places.setdefault(document_id, place)
    assert len(seen) == len(first_places)
