"""What only the source can show: code that reaches for the grader's parts in its process.

Code that lists all existing classes reaches the grader's; code that at once keeps only those of its
own file looks up what its author has written.

Ready-made answers are seen when they run (`observe`). Here, dotted names are read from the syntax
tree and resolved through imports and aliases, in time linear in the code. What cannot be resolved
counts in the student's favour.

TRUST BOUNDARY. The code read here is hostile text; nothing is run. What is found makes a person
review the answer; what is not found proves nothing, since code can hide any name from a reader. No
mark is earned or lost here: a verdict of `policy` withholds the marks until that review.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autograder.student import course

TAMPERING = (
    *(f"autograder.{part}" for part in ("bank", "judge", "notebook", "publishing", "sandbox")),
    *(f"autograder.student.{part}" for part in ("authoring", "engine", "expected")),
    *(f"{course.package() or '-'}.{part}" for part in ("exercises", "expected")),
    *("solutions", "worker", "warm", "walls", "watch", "seccomp"),
    *("ctypes", "_ctypes", "gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    *("cffi", "_cffi_backend", "inspect.getargvalues"),
    *("sys._current_frames", "sys.settrace", "sys.setprofile", "object.__subclasses__"),
    *("_thread.start_new_thread", "_thread.start_joinable_thread"),
    *("threading._start_new_thread", "threading._start_joinable_thread"),
    *("threading._profile_hook", "torch.utils._mode_utils"),
    *("threading.settrace", "threading.setprofile", "torch.utils._python_dispatch"),
    *("torch._C.DisableTorchFunction", "torch._C._DisableTorchDispatch"),
    *("torch._C._pop_torch_function_stack", "torch._C._pop_torch_dispatch_stack"),
    *("torch._C._get_function_stack_at", "torch._C._get_dispatch_stack_at"),
    *(f"torch.overrides._get_current_function_mode{end}" for end in ("", "_stack")),
    *("torch._C._ExcludeDispatchKeyGuard", "torch._C._dispatch_tls_set_dispatch_key_excluded"),
    *("torch._C._dispatch_library", "torch.library._impls", "torch.library.get_kernel"),
    "torch._C._jit_to_static_module",
)
ATTRIBUTES = (
    *("f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame", "cr_frame"),
    *("__globals__", "redispatch", "redispatch_boxed", "call_boxed"),  # kernels below the hooks
)
_INNER = tuple(f"{name}." for name in TAMPERING)
_IMPORTERS = ("importlib.import_module", "importlib.__import__", "__import__")
_OUTSIDE = frozenset(("object", "__import__"))  # names that need no import
_MEANINGS = 4  # of one name: so many of the latest are kept
_SHORT = 20  # nodes of a condition
_LONGEST = 100  # characters of a dotted name

Names = tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """A use of a name that must not be used: what it resolves to, and where it is."""

    name: str
    line: int
    cell: int = 0

    def place(self, cells: int) -> str:
        """Where to look, in a file with `cells` code cells."""
        return f"line {self.line}" + (f" of code cell {self.cell + 1}" if cells > 1 else "")


class Code:
    """The cells of a file, with what their names resolve to."""

    def __init__(self) -> None:
        self.cells = 0
        self.aliases: dict[str, Names] = {}
        self.stars: Names = ()
        self.classes: set[str] = set()
        self.tampering: list[Use] = []

    def add(self, tree: ast.Module) -> None:
        """Add a cell."""
        nodes = list(ast.walk(tree))
        self._bind(nodes)
        self.classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
        own = self._own(nodes)
        found = {*self._uses(nodes, own)}
        self.tampering += sorted(found, key=lambda use: (use.line, use.name))
        self.cells += 1

    def _bind(self, nodes: Iterable[ast.AST]) -> None:
        """Record what imports and plain assignments bind names to."""
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._means(alias.asname or top, alias.name if alias.asname else top)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        self.stars = (*self.stars, node.module or "")[-_MEANINGS:]
                    else:
                        self._means(alias.asname or alias.name, f"{node.module or ''}.{alias.name}")
            elif isinstance(node, ast.Assign | ast.NamedExpr):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and (name := self._plain(node.value)):
                        self._means(target.id, name)

    def _means(self, name: str, meaning: str) -> None:
        known = (*self.aliases.get(name, ()), meaning[:_LONGEST])
        self.aliases[name] = tuple(dict.fromkeys(known))[-_MEANINGS:]

    def _plain(self, node: ast.AST) -> str | None:
        """The dotted name of a chain of attributes on an imported name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < _MEANINGS:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([self.aliases[node.id][-1], *reversed(parts)])

    def _own(self, nodes: Iterable[ast.AST]) -> set[int]:
        """Nodes that refer to nothing outside: an argument called `object`, and a list of all
        classes of which only the file's own are kept."""
        own: set[int] = set()
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                arguments = node.args
                named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                if any(a.arg == "object" for a in named) and id(node) not in own:
                    own.update(map(id, ast.walk(node)))
            elif isinstance(node, ast.comprehension) and (function := self._keeps_its_own(node)):
                own.add(id(function))
        return own

    def _keeps_its_own(self, part: ast.comprehension) -> ast.Attribute | None:
        """What is called in `for c in ….__subclasses__() if`, if it goes on: c is one of the
        file's."""
        if not (isinstance(part.iter, ast.Call) and isinstance(part.iter.func, ast.Attribute)):
            return None
        if not (isinstance(part.target, ast.Name) and part.ifs):
            return None
        kept = ast.unparse(part.ifs[0]) if len(list(ast.walk(part.ifs[0]))) < _SHORT else ""
        one = part.target.id
        home = (f"{one}.__module__ == {name}" for name in ("__name__", "'__main__'"))
        ours = *home, *(f"issubclass({one}, {name})" for name in self.classes)
        return part.iter.func if kept in ours else None

    def _uses(self, nodes: Sequence[ast.AST], own: set[int]) -> Iterator[Use]:
        """The names in some code that reach in, `nodes` being its tree, parents before children."""
        means: dict[int, Names] = {}
        for node in reversed(nodes):
            meanings = self._meanings(node, means)
            if id(node) in own and isinstance(node, ast.Name | ast.Attribute):
                meanings = [name for name in meanings if not name.startswith("object")]
            names = tuple(n for n in meanings if len(n) <= _LONGEST)
            means[id(node)] = names
            attribute = node.attr if isinstance(node, ast.Attribute) else _text(node)
            for name in (*names, *([attribute] if attribute in ATTRIBUTES else ())):
                if _reaches_in(name):
                    yield Use(name, getattr(node, "lineno", 1), self.cells)

    def _meanings(self, node: ast.AST, means: dict[int, Names]) -> Iterable[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            return [module, *(f"{module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Name):
            known = self.aliases.get(node.id, (node.id,) if node.id in _OUTSIDE else ())
            return known or [f"{module}.{node.id}" for module in self.stars]
        if isinstance(node, ast.Attribute):
            return [f"{name}.{node.attr}" for name in means.get(id(node.value), ())]
        if isinstance(node, ast.Subscript):
            text = _text(node.slice)
            whole = means.get(id(node.value), ())  # os.sys is sys, too
            modules = any(f".{name}".endswith(".sys.modules") for name in whole)
            return [text] if text and modules else ()
        if isinstance(node, ast.Call) and node.args:
            text = _text(node.args[0])
            called = means.get(id(node.func), ())
            return [text] if text and not set(_IMPORTERS).isdisjoint(called) else ()
        return ()


def describe_uses(uses: Sequence[Use], cells: int) -> str:
    """The first of some uses as text, and the number of others."""
    first = uses[0]
    more = len({(use.cell, use.line) for use in uses}) - 1
    return f"{first.name} in {first.place(cells)}" + (f" (and {more} more)" if more else "")


def _reaches_in(name: str) -> bool:
    return f"{name}.".startswith(_INNER) or name in ATTRIBUTES


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
