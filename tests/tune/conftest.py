from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders.tuning_data import Noted


@pytest.fixture(autouse=True)
def forgotten(hardly_warm: None) -> Iterator[None]:
    Noted.forget()
    yield
    Noted.forget()
