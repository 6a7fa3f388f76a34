"""Pictures are drawn in the process of the tests, where V8 starts once: see `cli/test_drawing.py`
for the process of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest


@pytest.fixture(scope="package", autouse=True)
def drawn_here() -> Iterator[None]:
    def here(texts: Sequence[str]) -> list[str]:
        import vl_convert

        from retrieval_bench_pictures.vega import VERSION

        return [vl_convert.vegalite_to_svg(text, vl_version=VERSION) for text in texts]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrieval_bench_pictures.draw.in_a_process", here)
        yield
