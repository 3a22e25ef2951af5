"""Kernels and hooks as Numba knows them. The plain way: each kernel is an ordinary Numba function on plain trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import types
from numba.core.imputils import lower_constant
from numba.core.typing.typeof import typeof_impl
from numba.extending import models, register_model

from doral.compiled.cache import cache_folder
from doral.compiled.kernels import INLINED, Kernel

OPTIONS = {
    "nogil": True,
    "error_model": "numpy",  # divisions are not checked: they would have to raise
    "_nrt": False,  # no reference counts, and nothing can allocate
}


def plain_dispatcher(kernel: Kernel) -> Any:
    """The ordinary Numba function of a kernel."""
    folder = cache_folder()
    is_kept = folder is not None and not kernel.function.__code__.co_filename.startswith("<")
    earlier = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or "")  # read when Numba decorates; other libraries keep theirs
    try:
        return numba.njit(cache=is_kept, forceinline=kernel.kind == INLINED, no_cfunc_wrapper=True, **OPTIONS)(
            kernel.function
        )
    finally:
        numba.config.CACHE_DIR = earlier


def _plain(kernel: Kernel) -> Any:
    return kernel.plain


_dispatcher_of: Callable[[Kernel], Any] = _plain


@contextmanager
def dispatchers_from(make: Callable[[Kernel], Any]) -> Iterator[None]:
    """Meanwhile, kernels that are called by kernels are compiled by what `make` returns. Hold Numba's lock."""
    global _dispatcher_of
    earlier, _dispatcher_of = _dispatcher_of, make
    try:
        yield
    finally:
        _dispatcher_of = earlier


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, context: Any) -> Any:
    return types.Dispatcher(_dispatcher_of(kernel))


class HookType(types.Callable, types.Opaque):
    """A hook or slot: calls go to what the composition of the first argument says."""

    def __init__(self, place: Hook) -> None:
        self.place = place
        super().__init__(name=f"Hook({place.name}, {id(place)})")

    @property
    def key(self) -> Any:
        return self.place

    def _chosen(self, arguments: tuple[Any, ...]) -> Any:
        composition = getattr(getattr(arguments[0], "instance_class", None), "composition", None)
        if composition is None:
            raise numba.TypingError(f"{self.place}: the class of its first argument carries no composition")
        return types.Dispatcher(_dispatcher_of(composed(self.place, composition, len(arguments))))

    def get_call_type(self, context: Any, arguments: tuple[Any, ...], keywords: Any) -> Any:
        return self._chosen(arguments).get_call_type(context, arguments, keywords)

    def get_call_signatures(self) -> Any:
        return (), False

    def get_impl_key(self, signature: Any) -> Any:
        return self._chosen(signature.args).get_impl_key(signature)


register_model(HookType)(models.OpaqueModel)


@typeof_impl.register(Hook)
def _type_of_hook(place: Hook, context: Any) -> Any:
    return HookType(place)


@lower_constant(HookType)
def _constant_hook(context: Any, builder: Any, hook_type: Any, value: Any) -> Any:
    return context.get_dummy_value()
