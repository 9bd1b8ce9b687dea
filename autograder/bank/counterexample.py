"""The mistakes shared by exercises that want an input which shows a bug and one which hides it."""

from autograder.bank import Bank

CHANGES = """
exchanged: > result = result[::-1]
    The two inputs are exchanged: on the first one right and wrong agree, on the second they differ.
    The pair is (shows, hides).
shown_twice: > result = result[0], result[0]
    Both inputs show the bug. The second one should hide it: right and wrong agree there.
hidden_twice: > result = result[1], result[1]
    Both inputs hide the bug. The first one should show it: right and wrong differ there.
shows_alone: > result = result[0]
    Only one input is returned. Return a pair, (shows, hides).
"""


def add_to(bank: Bank) -> None:
    """Add these mistakes to a bank, as changes of its reference."""
    bank.changes(CHANGES)
