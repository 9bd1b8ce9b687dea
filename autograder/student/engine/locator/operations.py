"""What operations do with numbers, by the names they have.

TRUST BOUNDARY. As in `locate`.
"""

OF_ITS_FORM = (  # what takes no numbers of an array, but its size, dtype or device
    *("arange", "zeros", "ones", "eye", "full", "empty", "tri", "new_zeros", "new_ones"),
    *("new_full", "new_empty", "zeros_like", "ones_like", "full_like", "empty_like"),
)
IDLE = ("detach", "clone", "contiguous", "copy", "numpy", "cpu")  # what leaves the numbers alone
MULTIPLYING = (
    *("mul", "mul_", "multiply", "div", "div_", "divide", "true_divide"),
    *("matmul", "einsum", "bmm", "dot", "sum", "mean"),
)
GROWING = ("exp", "exp_", "expm1", "exp2", "Pow", "pow", "power", "square")
DIVIDING = ("Mod", "FloorDiv", "remainder", "fmod", "floor_divide", "mod", "divmod")
NEGATED = ("Invert", "invert", "logical_not", "bitwise_not")
SELECTING = ("topk", "sort")  # of an array, as many as any answer may want
OF_ONE_NUMBER = tuple(n for n in OF_ITS_FORM if n.startswith(("zeros", "ones", "new_z", "new_o")))
ORDERLY = ("exponential",)  # kinds that leave each number in its place, and often come late
