"""The process that forks those that judge: it imports once, for all of them, what they need.

TRUST BOUNDARY. It runs our own code alone, as those do that it forks.
"""

from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext

IMPORTED = ["autograder.grading.schedulers", "torch", "autograder.grading.reference"]


def get_ready() -> ForkServerContext:
    """Start the process, if it is not there yet; the context in which it forks.

    Who has long imports of its own to make calls this before them: both go on side by side.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    forkserver.ensure_running()
    return context
