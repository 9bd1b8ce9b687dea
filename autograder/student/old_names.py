"""Import names of the last release, which still work for this one, and warn.

A course lists those of its own in `course.py`, as `OLD_NAMES`.

TRUST BOUNDARY. In a sandbox, what a name stands for is looked up as if it had been imported by its
new name: nothing is there that would not be there otherwise.
"""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

from autograder.student import course

_OLD = {"autograder.progress": "autograder.student.progress"}


class OldNames(MetaPathFinder, Loader):
    """Finds modules by names that they no longer have."""

    def __init__(self, names: dict[str, str]):
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in self.names else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = self.names[spec.name]
        warnings.warn(f"{spec.name} is now {new}", FutureWarning, stacklevel=2)
        module = import_module(new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import has put the old name's there


def keep_old_names() -> None:
    """Let the names of the last release be imported."""
    theirs = getattr(course.contents(), "OLD_NAMES", {}) if course.package() else {}
    sys.meta_path.append(OldNames(_OLD | theirs))
