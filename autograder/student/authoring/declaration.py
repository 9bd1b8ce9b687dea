"""Declares an exercise, aspect by aspect, each below the inputs that it is judged on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from autograder.student.authoring.repeated_calls import Found, follows_from_each_call
from autograder.student.engine import aspects, exception_aspect
from autograder.student.engine.aspects import Runs, judge_each, results_found
from autograder.student.engine.chance import draws_afresh
from autograder.student.engine.runs import (
    BLOCKS,
    Aspect,
    Exercise,
    Finding,
    Names,
    Record,
    Run,
    Trial,
)

_DEVICE_POINTS = 0.05
_FURTHER = 0.05  # of the points, for further calls

Make = Callable[[str, Runs], Aspect]  # of the hint and the runs
Decorator = Any  # of a function that draws the runs; None where they are given


class Declaration:
    """An exercise in the making: every method adds an aspect, in the order in which they are shown.

    A method decorates the function that draws the aspect's runs, whose docstring is the hint. Where
    other functions draw them, the method gets the hint and these functions instead, and makes their
    runs one after the other.
    """

    def __init__(
        self,
        name: str,
        title: str,
        arguments: tuple[str, ...],
        *,
        allows: Sequence[str] = (),
        forbids: tuple[str, ...] = (),
        uses: tuple[str, ...] = (),
        returns: Names = (),
        recorded: bool = True,
    ):
        """`allows` names exercises whose blocks an answer may call, `uses` other blocks.

        `returns` names the parts of a result that is a tuple, with their articles, for messages.
        Not `recorded` is an exercise that compares nothing with the reference.
        """
        blocks = {block: f"{BLOCKS}:{block}" for block in allows}
        self._exercise = Exercise(
            name, title, arguments, (), blocks, forbids, uses, returns, recorded
        )
        self._aspects: list[Aspect] = []
        self._compared: list[Runs] = []
        self._again: Sequence[Runs] = ()
        self._found: Found = results_found
        self._step = ""

    def exercise(self) -> Exercise:
        """The exercise, with one aspect more for what is kept from one call to the next: its
        points are taken off the dearest."""
        found = [*self._aspects]
        if self._exercise.recorded:
            points = max(round(_FURTHER * sum(aspect.points for aspect in found), 1), _FURTHER)
            dearest = max(found, key=lambda aspect: aspect.points)
            less = replace(dearest, points=round(dearest.points - points, 6))
            found[found.index(dearest)] = less
            calls = self._compared, self._again
            further = follows_from_each_call(found[0], points, *calls, self._found)
            found.append(further)
        return replace(self._exercise, aspects=tuple(found))

    def equals(
        self,
        title: str,
        points: float,
        hint: str = "",
        *runs: Runs,
        part: int | None = None,
        only_if_right: bool = False,
        forgeable: bool = False,
    ) -> Decorator:
        """The results equal those of the reference. `part` selects one part of a tuple; the flags
        are those of `Aspect`."""

        def make(hint: str, runs: Runs) -> Aspect:
            self._compared.append(runs)
            aspect = aspects.equals_reference(title, points, hint, runs, part=part)
            return replace(aspect, only_if_right=only_if_right, forgeable=forgeable)

        return self._add(make, hint, runs)

    def holds(
        self,
        title: str,
        points: float,
        problem: Callable[[Run, Record], str | None],
        hint: str = "",
        *runs: Runs,
        only_if_right: bool = False,
        forgeable: bool = False,
    ) -> Decorator:
        """A property of the result: `problem(run, record)` returns one line on what is wrong.

        The flags are those of `Aspect`: `only_if_right` and `forgeable`.
        """
        flags = {"only_if_right": only_if_right, "forgeable": forgeable}
        has = aspects.has_property
        return self._add(lambda h, r: has(title, points, h, r, problem, **flags), hint, runs)

    def aspect(
        self,
        title: str,
        points: float,
        judge: Callable[[Trial], Finding],
        hint: str = "",
        *runs: Runs,
        only_if_right: bool = False,
    ) -> Decorator:
        """Each run is judged on its own by `judge`."""
        make = partial(Aspect, title, points, judge=judge_each(judge), only_if_right=only_if_right)
        return self._add(make, hint, runs)

    def aspect_over_runs(
        self,
        title: str,
        points: float,
        judge: Callable[[Sequence[Trial]], Finding],
        hint: str = "",
        *runs: Runs,
    ) -> Decorator:
        """All runs are judged at once by `judge`."""
        return self._add(partial(Aspect, title, points, judge=judge), hint, runs)

    def gradients(
        self, title: str, points: float, hint: str = "", *runs: Runs, if_nan: str = ""
    ) -> Decorator:
        """The gradients with respect to every argument and parameter equal the reference's.

        `if_nan` is the hint for a gradient that is not finite, the other hint for any other.
        """
        make = partial(aspects.gradients_match, title, points, if_nan=if_nan)
        return self._add(make, hint, runs)

    def raises(
        self,
        title: str,
        points: float,
        error: type[Exception],
        hint: str = "",
        *runs: Runs,
        naming: Callable[[Run], Sequence[object]] = lambda run: (),
    ) -> Decorator:
        """Each run ends in `error`, whose text holds everything that `naming(run)` lists."""
        make = partial(exception_aspect.raises, title, points, error=error, naming=naming)
        return self._add(make, hint, runs)

    def keeps_dtypes(self, points: float, hint: str = "", *runs: Runs) -> Decorator:
        """Every array in the result has the reference's dtype and precision."""
        return self._add(partial(aspects.dtypes_kept, points), hint, runs)

    def leaves_inputs_alone(self, points: float, *runs: Runs) -> None:
        """The call leaves its arguments unchanged."""
        self.add(aspects.inputs_untouched(points, _joined_runs(runs)))

    def leaves_state_alone(
        self, points: float, *runs: Runs, of_a_module: bool = False, writes: bool = False
    ) -> None:
        """Global state and the modules passed in are left unchanged; a module may draw its
        parameters at random, and a function that `writes` change those of its arguments."""
        together = _joined_runs(runs)
        if of_a_module:
            return self.add(aspects.no_side_effects_of_a_module(points, together))
        return self.add(aspects.no_side_effects(points, together, writes))

    def called_again(self, *runs: Runs, found: Found = results_found) -> None:
        """More runs for the aspect of further calls, which `exercise` adds to every declaration.

        That aspect chooses calls itself, from all runs whose results are compared: in pairs of the
        same shapes with other values, longer and shorter ones in turn, the first once more at the
        end; of one object of a class, or of a function in one process. Give runs of several calls
        in a row where these do not show what may be kept. `found` compares each call with the
        reference's, where equality of whole results is too much.
        """
        self._again, self._found = runs, found

    def step(self, method: str = "") -> None:
        """The aspects that follow need this method alone, with those of the steps before."""
        self._step = method

    def follows_its_inputs(self, *runs: Runs) -> None:
        """The call works on the device of its inputs. Of each function, the first run.

        The points are taken off another aspect: of those about devices, or else of those that can
        be forged as this one can, so that no exercise gives more for that, or else off the first.
        """
        chosen: Runs = lambda draw: [run for one in runs for run in draw.draw_once(one)[:1]]  # noqa: E731
        sources = (
            [a for a in self._aspects if "device" in a.title],
            [a for a in self._aspects if a.forgeable and a.points >= 2 * _DEVICE_POINTS],
            self._aspects,
        )
        source = next(filter(None, sources))[0]
        points = min(_DEVICE_POINTS, source.points / 2)
        less = replace(source, points=round(source.points - points, 6))
        self._aspects[self._aspects.index(source)] = less
        self.add(aspects.on_the_inputs_device(points, chosen))

    def draws_anew(self, with_torchs: bool = False) -> None:
        """The last aspect also wants other draws under other seeds of the global generators, in
        fresh objects; and the same under the same, if it is `with_torchs` that is to be drawn."""
        self._aspects[-1] = draws_afresh(self._aspects[-1], with_torchs)

    def add(self, aspect: Aspect) -> None:
        """An aspect that none of the other methods makes."""
        self._aspects.append(replace(aspect, step=self._step))

    def _add(self, make: Make, hint: str, runs: Sequence[Runs]) -> Callable[[Runs], Runs] | None:
        if runs:
            self.add(make(hint, _joined_runs(runs)))
            return None

        def decorate(function: Runs) -> Runs:
            if not function.__doc__:
                raise ValueError(f"{function.__name__} needs a docstring: the aspect's hint")
            self.add(make(" ".join(function.__doc__.split()), _joined_runs([function])))
            return function

        return decorate


def _joined_runs(functions: Sequence[Runs]) -> Runs:
    """The runs of several functions, one after the other; those of one are drawn once."""
    return lambda draw: [run for function in functions for run in draw.draw_once(function)]


def exercises(chapter: str, *modules: str) -> tuple[Exercise, ...]:
    """What the modules of a chapter's package declare, each under the name `EXERCISE`."""
    return tuple(import_module(f"{chapter}.{module}").EXERCISE.exercise() for module in modules)
