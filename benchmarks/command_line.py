"""The options of a benchmark's command line, as their defaults tell them."""

import argparse
from typing import Any


def options(description: str, **defaults: Any) -> argparse.Namespace:
    """What the command line says of these options, each of its default's type.

    One that is false is a switch; one whose default are several values takes several, or words
    where there are none.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    for name, default in defaults.items():
        how: dict[str, Any] = {"type": type(default)}
        if default is False:
            how = {"action": "store_true"}
        elif isinstance(default, (list, range, tuple)):
            how = {"nargs": "+", "type": type(next(iter(default), ""))}
        parser.add_argument("--" + name.replace("_", "-"), default=default, **how)
    return parser.parse_args()
