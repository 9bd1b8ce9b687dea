"""The course's blocks in a process that judges answers: only those that are no answer there.

The judge sends their code (`grader.block_code`). In the place of every other block there is an
object that says so when it is called, and becomes the block once that is handed out.

TRUST BOUNDARY. This runs in the same process as the answer. The code comes from the judge.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from autograder.student import course
from autograder.student.engine.arrays import Value
from autograder.student.engine.code_origin import register_again
from autograder.student.engine.observe import ENTERED, note_block

ABSENT = "it is not there while yours is judged"


class UnavailableBlock:
    """Stands for a block that is not in this process."""

    def __init__(self, module: ModuleType, name: str):
        self._module, self._name = module, name

    def _block(self) -> Value:
        try:
            return vars(self._module)[self._name]
        except KeyError:
            told = f"{self._module.__name__}.{self._name} is a right answer to an exercise"
            raise RuntimeError(f"{told}: {ABSENT}") from None

    def __call__(self, *args: Value, **kwargs: Value) -> Value:
        return self._block()(*args, **kwargs)

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (self._block(),)

    def __repr__(self) -> str:
        return f"<{self._module.__name__}.{self._name}, not available>"


class BlockPackage:
    """The package of the blocks: its modules, empty until code is handed out."""

    def __init__(self, names: Mapping[str, Sequence[str]]):
        """`names` are those of each module, the package's own first."""
        self.modules: dict[str, ModuleType] = {}
        for place, known in names.items():
            module = self.modules[place] = ModuleType(place)
            vars(module)["__getattr__"] = _looked_up_in(module, frozenset(known))
            vars(module)[ENTERED] = note_block
            sys.modules[place] = module
            parent, _, name = place.rpartition(".")
            setattr(sys.modules[parent], name, module)
        for package in list(self.modules.values())[:1]:
            package.__path__ = []

    def hand_out(self, pieces: Sequence[tuple[str, bytes]]) -> None:
        """Run code in the modules, in order."""
        for place, code in pieces:
            file = os.path.join(course.root(), *place.split(".")) + ".py"
            exec(compile(code, file, "exec", dont_inherit=True), vars(self.modules[place]))
        for place in {place for place, _ in pieces}:
            register_again(place)


def _looked_up_in(module: ModuleType, known: frozenset[str]) -> Callable[[str], UnavailableBlock]:
    def __getattr__(name: str) -> UnavailableBlock:  # noqa: N807  (Python looks for this name)
        if name in known:
            return UnavailableBlock(module, name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return __getattr__
