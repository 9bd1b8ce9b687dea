"""The code of the course's blocks, cut to what a process that judges answers may hold.

Many blocks are right answers to exercises. So a sandbox has none of their files: it is sent those
of earlier chapters when it starts, and for an exercise those that it hands out or that stand in for
answers before it. Whatever stands at the exercise or after it is not in the process.

TRUST BOUNDARY. Trusted code of the judging process, which reads the course's own files alone.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from autograder.student.course import blocks, chapters, exercises_of
from autograder.student.engine.observe import ENTERED
from autograder.student.engine.runs import Exercise

Place = tuple[str, str]  # a module of the package, and a name in it
Pieces = list[tuple[str, bytes]]  # modules, each with code to run in it, in this order


@cache
def order() -> dict[str, int]:
    """The place of each exercise in the course."""
    names = (exercise.name for slug in chapters() for exercise in exercises_of(slug))
    return {name: place for place, name in enumerate(names)}


def is_earlier(name: str, exercise: str) -> bool:
    """Whether a block may be in the process that judges an exercise: it is none, or an earlier."""
    return order().get(name, -1) < order()[exercise]


@cache
def all_blocks() -> frozenset[str]:
    """The names of all public blocks."""
    if not blocks():
        return frozenset()
    known = _package().links
    return frozenset(n for module, n in known if module == blocks() and n[0] != "_")


@cache
def blocks_before(slug: str) -> frozenset[str]:
    """The public blocks that a submission of a chapter finds: those of earlier chapters, and what
    is no exercise and in no block of this chapter or a later one."""
    names = all_blocks()
    earlier = {e.name for s in chapters()[: chapters().index(slug)] for e in exercises_of(s)}
    later = (names & order().keys()) - earlier
    inside = {name for _, name in _needed(later)}
    found = (names & earlier) | (names - order().keys() - inside)
    return frozenset(n for n in found if later.isdisjoint(p[1] for p in _needed({n})))


def blocks_for(slug: str, exercise: Exercise, instead: Iterable[str] = ()) -> frozenset[str]:
    """The blocks that are in the process while an answer is probed, `instead` of others there."""
    return blocks_before(slug) | {*exercise.allows, *exercise.uses, *instead}


@lru_cache(maxsize=1024)
def pieces(names: frozenset[str], there: frozenset[str] = frozenset()) -> Pieces:
    """The code that defines some blocks, and what they need, where others are `there` already."""
    if not blocks():
        return []
    return [*_package().code_of(_needed(names) - _needed(there))]


@cache
def names_by_module() -> dict[str, list[str]]:
    """All names of each module of the package, its own first; nothing without blocks."""
    if not blocks():
        return {}
    package = _package()
    return {module: [n for m, n in package.links if m == module] for module in package.modules}


def blocks_in(names: frozenset[str]) -> set[str]:
    """The exercises among some blocks and what they need."""
    return {name for _, name in _needed(names)} & order().keys()


@lru_cache(maxsize=256)
def _needed_once(names: frozenset[str]) -> frozenset[Place]:
    if not names:  # as in a course without blocks
        return frozenset()
    return frozenset(_package().closure((blocks(), name) for name in names))


def _needed(names: Iterable[str]) -> frozenset[Place]:
    return _needed_once(frozenset(names))


class _Package:
    """The syntax trees of the package's modules, and what each of their names needs."""

    def __init__(self, name: str):
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        folder = Path(spec.origin).parent
        files = sorted(folder.glob("*.py"), key=lambda path: path.stem != "__init__")
        self.name = name
        self.modules = list(map(self._module, files))
        self.imports: dict[str, list[ast.stmt]] = {}  # of other packages
        self.defined: dict[Place, ast.stmt] = {}
        self.links: dict[Place, Place] = {}  # where a name is defined: here, or what it is there
        for module, path in zip(self.modules, files, strict=True):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            self._read(module, _Announcing().visit(tree))

    def _module(self, path: Path) -> str:
        return self.name if path.stem == "__init__" else f"{self.name}.{path.stem}"

    def _read(self, module: str, tree: ast.Module) -> None:
        others = self.imports[module] = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module in self.modules:
                for alias in node.names:
                    self.links[module, alias.asname or alias.name] = (node.module, alias.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                others.append(node)
            for name in _bound(node):
                self.defined[module, name] = node
                self.links[module, name] = (module, name)

    def closure(self, places: Iterable[Place]) -> set[Place]:
        """Some names and all that they need, each also under the name that it is imported by."""
        found, todo = set[Place](), [place for place in places if place in self.links]
        while todo:
            place = todo.pop()
            if place not in found:
                found.add(place)
                if self.links[place] != place:
                    todo.append(self.links[place])
                else:
                    used = ast.walk(self.defined[place])
                    names = {node.id for node in used if isinstance(node, ast.Name)}
                    todo += [p for name in names if (p := (place[0], name)) in self.links]
        return found

    def code_of(self, places: Collection[Place]) -> Iterator[tuple[str, bytes]]:
        """The code that defines some names: the package's own, its modules', what it imports."""
        for module in self.modules:
            own = [p for p in places if p[0] == module]
            made = {id(self.defined[p]): self.defined[p] for p in own if self.links[p] == p}
            nodes = sorted(made.values(), key=lambda node: node.lineno)
            links = [] if module == self.name else self._imported(own)
            if nodes or links:
                yield module, _text([*self.imports[module], *links, *nodes])
        exported = self._imported([p for p in places if p[0] == self.name])
        if exported:
            yield self.name, _text(exported)

    def _imported(self, places: list[Place]) -> list[ast.stmt]:
        links = [(self.links[place], place[1]) for place in places if self.links[place] != place]
        return [
            ast.ImportFrom(module, [ast.alias(name, at)], 0) for (module, name), at in sorted(links)
        ]


@cache
def _package() -> _Package:
    return _Package(blocks())


def _text(nodes: list[ast.stmt]) -> bytes:
    return ast.unparse(ast.Module(nodes, [])).encode()


class _Announcing(ast.NodeTransformer):
    """Has each function and method say first that it is entered."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.body.insert(ast.get_docstring(node) is not None, ast.parse(f"{ENTERED}()").body[0])
        return node


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines; its list of public names is none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [t.id for t in targets if isinstance(t, ast.Name) and t.id != "__all__"]
