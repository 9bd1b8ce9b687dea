"""Source to notebooks, pages, bundle and paper."""

import gc


def collect_garbage_seldom() -> None:
    """In this process: the trees of a book have very many nodes, all of them needed to the end.

    Python would walk through them again and again; without that, pages take a quarter less time.
    """
    gc.set_threshold(100_000, 20, 50)
