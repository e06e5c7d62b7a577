"""Doing something once a module is there, without being the one who imports it."""

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def when_imported(name: str, act: Callable[[], None]) -> None:
    """Call `act` right after the module `name` was imported, now if it is there already."""
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Watch(name, act))


class _Watch(MetaPathFinder):
    """Stands before the finders of Python until its module is asked for."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name, self._act = name, act
        self._lock = threading.Lock()

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, whose loader also acts; nothing for any other module."""
        if fullname != self._name or not self._lock.acquire(blocking=False):
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Acting(spec.loader, self._act)
        return spec


class _Acting(Loader):
    """A loader that acts after the one it stands for."""

    def __init__(self, loader: Loader, act: Callable[[], None]) -> None:
        self._loader, self._act = loader, act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, then act."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._act()
