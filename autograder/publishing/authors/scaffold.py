"""`autograder new exercise`: writes the beginning of an exercise in all the places it belongs to.

What it writes runs as it stands: the reference raises `NotImplementedError`, the declaration draws
inputs that fit the signature, the bank holds mistakes that any exercise may have. What is left to
be written says TODO, and `autograder try` says where.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, indent

from autograder.publishing.authors.signature import Signature, names_in, of_function, parse
from autograder.publishing.release import chapter_files
from autograder.student import course
from autograder.student.course import exercises_of, find_exercise

_SUCH_AS = '(x: Float[Tensor, "n d"]) -> Float[Tensor, "n"]'


@dataclass(frozen=True)
class Plan:
    """What is to be written: texts by path, and where the reference will be."""

    files: Mapping[Path, str]
    reference: tuple[Path, int]

    def write(self) -> None:
        for path, text in self.files.items():
            path.write_text(text, encoding="utf-8")


def new_exercise(
    root: Path, chapter: str, name: str, signature: str = "", title: str = "", after: str = ""
) -> Plan:
    """Plan a new exercise of a chapter, given by slug or file name; nothing is written yet.

    `signature` is that of the reference, unless the chapter's module defines it already. `after`
    names the exercise after which it comes; default: the chapter's last. Raises `ValueError` for a
    name or a signature that is not valid, and for a name that is taken.
    """
    page = chapter_files(root, [chapter])[0]
    slug = page.stem.partition("_")[2]
    _free(name)
    order = [exercise.name for exercise in exercises_of(slug)]
    if after and after not in order:
        raise ValueError(f"{after} is not an exercise of {slug}; there are {', '.join(order)}")
    after = after or order[-1]
    module = root / "solutions" / f"{slug}.py"
    source = module.read_text(encoding="utf-8")
    found = _find_signature(source, name)
    if found is not None and signature:
        raise ValueError(f"solutions/{slug}.py defines {name} already: leave the signature out")
    if found is None and not signature:
        raise ValueError(
            f"solutions/{slug}.py does not define {name}: write it first, or give its signature, "
            f"such as {_SUCH_AS!r}"
        )
    plan = found or parse(name, signature)
    title = title or name.replace("_", " ").capitalize()
    if found is None:
        _check_annotations(plan, source, slug)
        source = _insert(source, _end_of(source, after), _reference(plan))
    exercises = course.folder("exercises") / slug
    bank = root / "solutions" / "mistakes" / slug / f"{name}.py"
    mistakes = bank.with_suffix(".txt")
    tests = root / "tests" / "course"
    test = (tests if tests.is_dir() else tests.parent) / f"test_{slug}_{name}.py"
    for path in (exercises / f"{name}.py", bank, mistakes, test):
        if path.exists():
            raise ValueError(f"{path.relative_to(root)} is there already")
    listed = (exercises / "__init__.py").read_text(encoding="utf-8")
    files = {
        module: source,
        exercises / f"{name}.py": _declaration(plan, title),
        exercises / "__init__.py": _add_to_list(listed, after, name),
        bank: _bank(plan, slug),
        mistakes: _mistakes(plan),
        page: _on_the_page(page, after, slug, name),
        test: _test(slug, name),
    }
    log = root / "CHANGELOG.md"
    if log.is_file():
        files[log] = _add_to_changelog(log.read_text(encoding="utf-8"), page, name)
    return Plan(files, (module.relative_to(root), _line_of(source, name)))


def _free(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} cannot be the name of a function")
    try:
        slug, _ = find_exercise(name)
    except KeyError:
        return
    raise ValueError(f"{slug} has an exercise called {name} already")


def _find_signature(source: str, name: str) -> Signature | None:
    """The signature of a function that a module defines; None if it does not define it."""
    for node in ast.parse(source).body:
        if getattr(node, "name", None) == name:
            if not isinstance(node, ast.FunctionDef):
                raise ValueError(f"{name} is a class: see CONTRIBUTING.md, which shows how")
            return of_function(node)
    return None


def _check_annotations(signature: Signature, source: str, slug: str) -> None:
    """Raise `ValueError` if the annotations use a name that the module does not have."""
    names = {"int", "float", "bool", "str", "tuple", "list", "dict", "None"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
    missing = sorted(names_in(signature) - names)
    if missing:
        told = f"solutions/{slug}.py does not import {', '.join(missing)}"
        raise ValueError(f"{told}, which the signature uses: add that first")


def _line_of(source: str, name: str) -> int:
    return next(n.lineno for n in ast.parse(source).body if getattr(n, "name", None) == name)


def _end_of(source: str, name: str) -> int:
    """The number of the last line of a definition."""
    body = ast.parse(source).body
    return next(n.end_lineno or 0 for n in body if getattr(n, "name", None) == name)


def _insert(text: str, line: int, block: str) -> str:
    """The text with a block after one of its lines."""
    lines = text.split("\n")
    # the solution ends in a comment, which belongs to the definition all the same
    while line < len(lines) and lines[line].startswith(" "):
        line += 1
    return "\n".join([*lines[:line], block, *lines[line:]])


def _reference(plan: Signature) -> str:
    arrays = [(p.name, p.array[2]) for p in plan.parameters if p.array and p.annotation]
    shapes = ", ".join(f"{name} `({', '.join(axes)})`" for name, axes in arrays)
    told = f"Shapes: {shapes} → TODO." if shapes else "TODO: the shapes."
    told = fill(f"{told} TODO: dtypes, errors, edge cases, and the source.", 84)
    return f'''

def {plan.name}{plan.text}:
    """TODO: say in one sentence what it returns.

{indent(told, "    ")}
    """
    ### BEGIN SOLUTION
    raise NotImplementedError("TODO: the reference")
    ### END SOLUTION'''


def _declaration(plan: Signature, title: str) -> str:
    names = "".join(f'"{p.name}", ' for p in plan.parameters)
    names = f"({names.rstrip()})" if len(plan.parameters) == 1 else f"({names[:-2]})"
    imports = "Draw, Run, call, tensor" if "tensor(draw" in plan.call() else "Draw, Run, call"
    arrays = [p for p in plan.required() if p.array]
    floats = [p for p in plan.required() if p.floats]
    parts = [
        f'''"""`{plan.name}`: {title.lower()}."""

from autograder.student.authoring import Declaration, {imports}

EXERCISE = Declaration("{plan.name}", "{title}", {names})


@EXERCISE.equals("random values", 1.0)
def _random(draw: Draw) -> list[Run]:
    """TODO: what to think of when the values are wrong, never the code of the fix."""
    return {_list_of(plan.call(), plan.call())}
'''
    ]
    if arrays:
        parts.append(f'''

@EXERCISE.equals("other shapes", 0.5)
def _shapes(draw: Draw) -> list[Run]:
    """TODO: what to think of when only the usual shape is right: one row, one column, more axes."""
    return {_list_of(plan.call(other=True))}
''')
    if plan.torch and floats and plan.gives_one_array_of_floats:
        parts.append(f'''

@EXERCISE.gradients("gradients", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """TODO: what to think of when the values are right and their gradients are not."""
    return {_list_of(plan.call(dtype="float64") + ".with_gradients()")}
''')
    if floats:
        other = "float64" if plan.torch else "float32"
        parts.append(f'''

@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """TODO: which dtypes stay as they are. Compute with {_kind_of(plan)} you are given."""
    return {_list_of(plan.call(dtype=other))}
''')
    if arrays:
        parts.append("\n\nEXERCISE.leaves_inputs_alone(0.25, _random)\n")
    if plan.torch and arrays:
        parts.append("EXERCISE.follows_its_inputs(_random)\n")
    return "".join(parts)


def _kind_of(plan: Signature) -> str:
    return "the tensors" if plan.torch else "the array"


def _list_of(*calls: str) -> str:
    """The code of a list of calls, in lines that are not too long."""
    line = f"[{', '.join(calls)}]"
    if len(line) <= 88:
        return line
    return "[\n" + "".join(f"        {_wrap(one)},\n" for one in calls) + "    ]"


def _wrap(code: str) -> str:
    """The code of a call, with an argument on each line if it is long."""
    if len(code) <= 90:
        return code
    tail = ".with_gradients()" if code.endswith(".with_gradients()") else ""
    inner = code.removesuffix(tail).removeprefix("call(").removesuffix(")")
    arguments = re.split(r", (?=draw|tensor|True|None|\")", inner)
    return "call(\n" + "".join(f"            {a},\n" for a in arguments) + f"        ){tail}"


def _add_to_list(text: str, after: str, name: str) -> str:
    """The list of a chapter's exercises with one more; modules are named after the exercises, in
    lower case, with underscores."""
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", after).lower()
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() in (f'"{after}",', f'"{module}",')]
    place = places[0] if places else max(i for i, line in enumerate(lines) if '",' in line)
    return "\n".join([*lines[: place + 1], f'    "{name}",', *lines[place + 1 :]])


def _bank(plan: Signature, slug: str) -> str:
    arguments = ", ".join(p.name for p in plan.parameters)
    return f'''"""Known answers to `{plan.name}`: mistakes, then right answers."""

from autograder.bank import Bank
from solutions import {slug} as right

BANK = Bank("{plan.name}", right, globals())
BANK.read()

# TODO: at least four right answers that are written another way:
#
# @BANK.right
# def with_a_loop({arguments}): …
'''


def _mistakes(plan: Signature) -> str:
    floats = [p.name for p in plan.required() if p.floats]
    text = """\
# TODO: at least six mistakes in all. One is a name, the change, and what went wrong:
#
# summed_over_columns: axis=-1 → axis=0
#     The sum runs down the columns, so …
"""
    if plan.gives_one_array_of_floats:
        text += "\nwrong_sign: > result = -result\n    The result has the wrong sign."
    if floats:
        text += f"""
{floats[0]}_changed: > {floats[0]} *= 2
    The result is right, but the caller's `{floats[0]}` is changed."""
    if floats and plan.torch:
        text += f"\nmade_on_the_cpu({floats[0]})"
    return text + "\n"


def _on_the_page(page: Path, after: str, slug: str, name: str) -> str:
    """The chapter with the new exercise after another one's check."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^check\({after}\)\n```\n", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{page.name} has no cell check({after})")
    cells = f"""
**Exercise.** TODO: what `{name}` is given and what it returns, shapes and all.

```{{code-cell}} ipython3
:tags: [exercise]
from solutions.{slug} import {name}
```

```{{code-cell}} ipython3
:tags: [check]
check({name})
```
"""
    return text[: found.end()] + cells + text[found.end() :]


def _test(slug: str, name: str) -> str:
    return f'''"""Facts about `{name}`, found by other means than the reference."""

from solutions.{slug} import {name}


def test_{name.lower()}_of_a_case_worked_by_hand():
    assert {name} is not None
    raise NotImplementedError("TODO: work out one small case by hand, and compare")
'''


def _add_to_changelog(text: str, page: Path, name: str) -> str:
    """The changelog with a line on the exercise under what is not released yet."""
    line = f"- Chapter {int(page.stem[:2])} asks for `{name}`: TODO, what students learn by it.\n"
    head = "## Unreleased\n\n### Added\n\n"
    if head not in text:
        text = text.replace("\n## ", f"\n{head}\n## ", 1)
    return text.replace(head, f"{head}{fill(line, 100, subsequent_indent='  ')}\n", 1)
