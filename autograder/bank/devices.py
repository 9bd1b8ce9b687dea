"""Mistakes that only a GPU shows: right numbers, and something that stays on the CPU.

An answer that is otherwise right fails there in one of three ways, whatever it computes, so each
exercise has these three mistakes, with the same causes.
"""

from autograder.bank import Bank

_AFTER_ALL = " On the CPU the numbers are right, and on a GPU there is an error."
MADE_ON_THE_CPU = (
    "A tensor that is made on the way is on the CPU, wherever the arguments are: torch.arange, "
    "torch.zeros and the like go there unless they are told a device." + _AFTER_ALL
)
THROUGH_NUMPY = (
    "The way leads through NumPy, which has no GPU and cannot read a tensor that is on one."
    + _AFTER_ALL
)
LEFT_ON_THE_CPU = (
    "The result is on the CPU, wherever the arguments are. The numbers are right, and on a GPU "
    "the next operation on it and on anything else fails."
)


def forgotten(bank: Bank, argument: str, numpy: bool = False, result: bool = False) -> None:
    """Add the mistakes of forgetting the device of an argument.

    `numpy` is for an answer that may compute in NumPy, since no gradients go through it, `result`
    for one that returns a single tensor.
    """
    zeros = f"torch.zeros({argument}.shape, dtype={argument}.dtype)"
    bank.change("made_on_the_cpu", MADE_ON_THE_CPU, before=f"{argument} = {argument} + {zeros}")
    if numpy:
        through = f"torch.from_numpy({argument}.numpy())"
        bank.change("through_numpy", THROUGH_NUMPY, before=f"{argument} = {through}")
    if result:
        bank.change("left_on_the_cpu", LEFT_ON_THE_CPU, after="result = result.cpu()")
