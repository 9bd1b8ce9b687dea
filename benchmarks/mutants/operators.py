"""The standard changes: the operators, in the order in which they are tried at a place."""

from benchmarks.mutants.calls import (
    argument_dropped,
    call_dropped,
    exchanged,
    index,
    name_exchanged,
    neighbour,
    off_by_one,
)
from benchmarks.mutants.effects import (
    detached,
    device,
    dtype,
    error,
    in_place,
    loop,
    statement_deleted,
)
from benchmarks.mutants.numbers import (
    axis,
    boolean,
    branch,
    comparison,
    constant,
    factor_dropped,
    other_operation,
    sign,
    term_dropped,
)
from benchmarks.mutants.places import Operator

OPERATORS: tuple[Operator, ...] = (
    *(axis, constant, sign, term_dropped, factor_dropped, other_operation),
    *(comparison, boolean, branch),
    *(call_dropped, argument_dropped, exchanged, neighbour, name_exchanged, index, off_by_one),
    *(detached, dtype, device, in_place),
    *(statement_deleted, loop, error),
)
