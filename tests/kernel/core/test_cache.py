from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from retrieval_bench.core.installed.cache import write_whole


def test_a_link_stays_one_and_no_part_is_left(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(b"before")
    (tmp_path / "link.html").symlink_to("page.html")
    write_whole(tmp_path / "link.html", b"after")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_bytes() == b"after"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As root, ``--out /dev/null`` would replace it for the whole machine."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"page")
    reader.join(timeout=60)
    assert read == [b"page"]
    assert pipe.is_fifo()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"page")
