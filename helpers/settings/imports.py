"""Importing a library without those packages that it drags along and that are not used.

A library's ``import`` lines are run whether what they bring is used or not, and some take seconds
of processor time in every notebook and every process.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from typing_extensions import override

__all__ = ["imported_when_called", "left_out", "without_collecting"]


@contextmanager
def left_out(*packages: str) -> Iterator[None]:
    """While this runs, importing one of ``packages`` fails as if it were not installed.

    For packages without which the library does, too. One that is imported already stays, and
    afterwards each can be imported as before.
    """
    hidden = [name for name in packages if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own sign for "not there"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextmanager
def imported_when_called(*packages: str) -> Iterator[None]:
    """While this runs, ``packages`` are not imported: what is taken from them imports them when it
    is called.

    For packages of which the library only calls functions and classes. One that is imported already
    stays, one that is not installed is still not there, and afterwards each can be imported as
    before.
    """
    stand_ins = _StandIns([name for name in packages if _can_be_imported(name)])
    sys.meta_path.insert(0, stand_ins)
    try:
        yield
    finally:
        sys.meta_path.remove(stand_ins)
        for name in stand_ins.made:
            del sys.modules[name]


@contextmanager
def without_collecting() -> Iterator[None]:
    """While this runs, Python does not look for garbage.

    Hardly anything that an import makes becomes garbage, and to find that out Python goes through
    all of it again and again: for transformers and TRL a fifth of the processor time.
    """
    was_looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_looking:
            gc.enable()


def _can_be_imported(package: str) -> bool:
    return package not in sys.modules and find_spec(package) is not None


class _StandIns(MetaPathFinder, Loader):
    """Finds, for some packages and whatever is in them, modules that have every name."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages
        self.made: list[str] = []  # the names of modules

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    @override
    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def get(attribute: str) -> Callable[..., Any]:
            if attribute.startswith("__"):  # which Python asks for, and means the module itself
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
            return _imports_when_called(name, attribute)

        module.__dict__["__getattr__"] = get
        self.made.append(name)


def _imports_when_called(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    return call
