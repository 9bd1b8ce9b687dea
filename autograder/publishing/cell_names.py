"""The names that a chapter's cell binds and reads, and the libraries that it imports."""

import ast
import builtins


def python(code: str) -> str:
    """A cell without IPython's own lines."""
    lines = code.split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def names_bound(code: str) -> set[str]:
    """The names that a cell binds at its top level."""
    names: set[str] = set()
    for node in ast.parse(python(code)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            names |= {
                n.id
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
    return names


def names_read(code: str) -> set[str]:
    reads = {
        n.id
        for n in ast.walk(ast.parse(python(code)))
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    return reads - set(vars(builtins))


def libraries(code: str) -> set[str]:
    """The packages that a cell imports at its top level: `numpy`, `torch`."""
    modules: list[str] = []
    for node in ast.parse(python(code)).body:
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append(node.module or "")
    return {module.partition(".")[0] for module in modules}
