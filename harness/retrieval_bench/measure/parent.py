"""The process that started this one, and what happens to this one when it ends."""

import os
import signal
import sys
from contextlib import suppress


def end_with(parent: int) -> bool:
    """Have this process killed when ``parent``, which started it, is; only Linux can. False where
    ``parent`` has ended already."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    return sys.platform != "linux" or os.getppid() == parent
