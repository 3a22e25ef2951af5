"""The plain way: every kernel is an ordinary Numba function on plain trees. Only public parts of Numba are used."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from numba.extending import typeof_impl

from doral.compiled.cache import cache_folder
from doral.compiled.kernels import Kernel


@cache
def plain_function(kernel: Kernel) -> Any:
    """Return the Numba function of a kernel; divisions are not checked, for they would have to raise."""
    folder = cache_folder()
    is_kept = folder is not None and not kernel.function.__code__.co_filename.startswith("<")
    earlier = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or "")  # read when Numba decorates; other libraries keep theirs
    try:
        return numba.njit(cache=is_kept, nogil=True, error_model="numpy")(kernel.function)
    finally:
        numba.config.CACHE_DIR = earlier


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, context: Any) -> Any:
    """A kernel that a kernel calls is its Numba function."""
    return numba.types.Dispatcher(plain_function(kernel))
