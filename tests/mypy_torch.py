"""mypy and torch: the parts of a module that is given are whatever was registered in it.

torch declares each as a tensor or a module, so that neither `attention.W_q.weight` nor
`attention.num_heads` would pass, which students write all the time.
"""

from collections.abc import Callable

from mypy.plugin import AttributeContext, Plugin
from mypy.types import AnyType, Type, TypeOfAny, UnionType, get_proper_type


class Modules(Plugin):
    """Takes a part that only `Module.__getattr__` finds for anything."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return _part if fullname.startswith("torch.nn.modules.module.Module.") else None


def _part(context: AttributeContext) -> Type:
    declared = get_proper_type(context.default_attr_type)
    return AnyType(TypeOfAny.explicit) if isinstance(declared, UnionType) else declared


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Modules
