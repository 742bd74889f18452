"""Inputs that take another way at a comparison of the code than all before.

The functions of a copy are compiled anew, so that each comparison records its distance: by how far
its operands miss its other outcome. What draws of a strategy reach seldom, such as one total of
many, is reached by steps: a choice of the strategy is changed, and where the distance changes, the
next step goes as far as that predicts. A *way* is a comparison in the code with one of its two
outcomes.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import math
import operator
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from hypothesis.strategies import SearchStrategy

from pytest_dp.basics.errors import noting_faults
from pytest_dp.basics.reach import reach
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.pairs.drawing import draw_values, remake_values
from pytest_dp.pairs.edits import Choices, DrawnValue, Edits, options_beside
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

FIRST_DRAWS = 60
"""Drawn inputs on which distances are measured first. With fewer, ways are searched for that draws
take by themselves."""
MAX_DRAWN = 24
"""Drawn inputs around which pairs are screened, whatever way they take. More take longer; fewer
miss what changes without a comparison."""
MAX_RUNS = 2_000
"""Runs in all. With fewer, comparisons of several choices at once are given up too early."""
MAX_ROUNDS = 32
"""Rounds of steps towards one way in which no input came closer, after which it is given up."""
MAX_PROBED = 12
"""Choices that are moved in one round. With fewer, long inputs take more rounds."""
EDITS = 8
"""Random edits in each round. With fewer, inputs of another length are hardly tried."""
JOINT_STEPS = [sign * size for size in range(1, 61) for sign in (1, -1)]
"""Steps of one choice that are joined with a step of another. With fewer, fewer lines are met."""
MAX_JOINT = 16
"""Such joint steps in a round. More are mostly outside of what a strategy allows."""
ROUNDING = 1e-9
"""Relative length by which a step of a float is longer, so that it ends behind the boundary."""
SIDEWAYS = 0.5
"""How often an equally close input takes the place of the closest. With 0, searches get stuck."""
MIN_SEEN = 10
"""Inputs that are all as far from a way, after which it is given up: as of a test on parameters."""
MAX_SECONDS = 10.0
"""Seconds of effort after which a search ends early, of a mechanism that hangs or is slow. With
more, time is lost on such ones; with less, a busy machine ends other searches."""
RECORDER = "__pytest_dp_distance__"
"""Global name under which functions that are compiled anew find the `Distances`."""
LEAST = 1e-9
"""Distance of a comparison whose operands are equal, while its outcome is the other one."""

Way = tuple[str, int, int, bool]
"""File, line, column and outcome of a comparison."""


@dataclass(slots=True)
class _Aim:
    """A way that no run took, and the input that came closest to it."""

    distance: float
    drawn: DrawnValue
    rounds: int = 0
    """Rounds of steps since an input last came closer than all before."""
    seen: int = 0
    """Inputs whose distance was measured."""
    varies: bool = False
    """Whether their distances differ."""


class Guided:
    """Searches the values of a strategy for those that take new ways at comparisons.

    `ends` are the smallest and largest numbers of the strategy, if they are known; `constants` are
    drawn now and then where the strategy allows them.
    """

    def __init__(
        self,
        strategy: SearchStrategy[Any],
        call: Call,
        seed: int,
        constants: Sequence[Any] = (),
        ends: tuple[Any, ...] | None = None,
    ) -> None:
        self._strategy, self._constants, self._ends = strategy, constants, ends
        self._seed, self.random = seed, Random(seed)
        self._distances = Distances()
        self._runner = NoiselessRunner(call, rewrite=self._distances.record_in)
        self._aims: dict[Way, _Aim] = {}
        self._taken: set[Way] = set()

    @cached_property
    def donors(self) -> list[DrawnValue]:
        """Values of the strategy, drawn at first access."""
        number = FIRST_DRAWS if self._distances.has_comparisons else MAX_DRAWN
        drawn = islice(draw_values(self._strategy, self._seed, self._constants, self._ends), number)
        return [one for one in drawn if one is not None and one.choices]

    def find_openings(self) -> Iterator[tuple[DrawnValue, str]]:
        """Run the mechanism; yield values that take a new way, and where: ``"stats.py:14"``.

        Drawn values come first. Raises OutOfTime where runs are slow.
        """
        deadline = Deadline(MAX_SECONDS)
        if not self._distances.has_comparisons:
            return
        _, openings = self._run(self.donors, deadline)
        yield from openings
        for aim in self._aims.values():
            if aim.seen >= MIN_SEEN and not aim.varies:
                aim.rounds = MAX_ROUNDS
        while self._aims and self._runner.runs < MAX_RUNS and not self._runner.reason:
            way, aim = min(self._aims.items(), key=lambda item: item[1].rounds)
            if aim.rounds >= MAX_ROUNDS:
                return
            aim.rounds += 1
            start, distance = aim.drawn, aim.distance
            probes = [(0, 0, start.choices), *self._probes(start)]
            made = remake_values(self._strategy, [choices for _, _, choices in probes])
            found, openings = self._run(made, deadline)
            yield from openings
            steps: list[Choices] = []
            slopes, broken = dict[int, float](), dict[int, float]()
            for (at, by, _), least in zip(probes, found, strict=True):
                there = least.get(way, math.inf)
                lost = [far for at_way, far in least.items() if far and found[0].get(at_way) == 0]
                if by and lost:
                    broken[at] = min(lost)
                if by and there != distance:
                    steps += _steps_to_zero(start, at, by, distance, there)
                    slopes.setdefault(at, by * (there - distance))
            steps += self._joint_steps(start, slopes, distance)
            steps += self._joint_steps(start, broken, 0.0)
            steps += [choices for _ in range(EDITS) for choices in self._edit(aim.drawn)]
            _, openings = self._run(remake_values(self._strategy, steps), deadline)
            yield from openings

    def _probes(self, drawn: DrawnValue) -> Iterator[tuple[int, int, Choices]]:
        """Yield the choices with one of them changed: its place, by how much (0 for texts)."""
        places = [at for at, choice in enumerate(drawn.choices) if type(choice) is not bool]
        self.random.shuffle(places)
        for at in places[:MAX_PROBED]:
            choice = drawn.choices[at]
            if type(choice) in (int, float):
                for by in (1, -1):
                    yield at, by, _move_number(drawn, at, by)
            else:
                options = options_beside(choice, self._constants)
                for option in self.random.sample(options, min(len(options), 4)):
                    yield at, 0, (*drawn.choices[:at], option, *drawn.choices[at + 1 :])

    def _joint_steps(
        self, drawn: DrawnValue, slopes: Mapping[int, float], distance: float
    ) -> Iterator[Choices]:
        """Yield the choices with two numbers moved so that a linear distance becomes, or stays, 0.

        `slopes` are by how much a step of 1 changes the distance, by place; if that is 0, of any
        sign. Nothing unless two of them, and the distance, are whole numbers.
        """
        places = [at for at, slope in slopes.items() if math.isfinite(slope) and slope % 1 == 0]
        if len(places) < 2 or distance % 1:
            return
        one, other = self.random.sample(places, 2)
        signs = (1,) if distance else (1, -1)
        left = ((by, distance + sign * by * slopes[one]) for by in JOINT_STEPS for sign in signs)
        for by, rest in islice((at for at in left if at[1] % slopes[other] == 0), MAX_JOINT):
            moved = DrawnValue(drawn.value, _move_number(drawn, one, by))
            yield _move_number(moved, other, -round(rest / slopes[other]))

    def _edit(self, drawn: DrawnValue) -> Iterator[Choices]:
        """Yield the choices after a random edit; nothing if the edit cannot be made."""
        donor = self.random.choice(self.donors)
        edits = Edits(drawn, donor, self.random.randrange)
        name = self.random.choice(("drop", "add", "swap", "change", "change", "move"))
        yield from islice(getattr(edits, name)(), 1)

    def _run(
        self, values: Sequence[DrawnValue | None], deadline: Deadline
    ) -> tuple[list[dict[Way, float]], list[tuple[DrawnValue, str]]]:
        """Run the mechanism on the values, and keep for each way the one that came closest.

        Return the distance of each value from each way (empty for None), and those that take a new
        way, with its place.
        """
        found: list[dict[Way, float]] = []
        openings: list[tuple[DrawnValue, str]] = []
        with self._runner.in_place(deadline):
            for drawn in values:
                self._distances.least = {}
                if drawn is not None:
                    self._runner.run(drawn.value)
                    if place := self._note_distances(drawn, self._distances.least):
                        openings.append((drawn, place))
                found.append(self._distances.least)
        return found, openings

    def _note_distances(self, drawn: DrawnValue, least: dict[Way, float]) -> str:
        """Update the aims by the distances of a value; return where it takes a new way, or ""."""
        place = ""
        for way, distance in least.items():
            if not distance:
                place = f"{way[0]}:{way[1]}" if way not in self._taken else place
                self._taken.add(way)
                self._aims.pop(way, None)
            elif way not in self._taken and math.isfinite(distance):
                aim = self._aims.setdefault(way, _Aim(distance, drawn))
                aim.seen += 1
                aim.varies |= distance != aim.distance
                if distance < aim.distance:
                    aim.distance, aim.drawn, aim.rounds = distance, drawn, 0
                elif distance == aim.distance and self.random.random() < SIDEWAYS:
                    aim.drawn = drawn
        return place


def _steps_to_zero(
    drawn: DrawnValue, at: int, by: int, distance: float, there: float
) -> list[Choices]:
    """Return the choices with the number at one place moved until the distance is 0, or below.

    As predicted linearly, from the `distance` at the value and the distance `there` after a step
    `by`. Empty where the distance after the step is not finite.
    """
    if not math.isfinite(there):
        return []
    far = by * distance / (distance - there)
    sizes = [far, far * (1 + ROUNDING), 2 * far]
    if type(drawn.choices[at]) is int:
        sizes = [math.floor(far), math.ceil(far), 2 * round(far)]
    return [_move_number(drawn, at, size) for size in dict.fromkeys(sizes)]


def _move_number(drawn: DrawnValue, at: int, by: float) -> Choices:
    """Return the choices of a value with the number at one place moved, also out of its range."""
    choices = list(drawn.choices)
    choices[at] += by
    return tuple(choices)


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class Distances:
    """The least distance of each way, recorded by functions that are compiled anew."""

    def __init__(self) -> None:
        self.least: dict[Way, float] = {}
        """In the runs since this was emptied; 0 for a way that was taken."""
        self.has_comparisons = False
        """Whether any function was compiled anew."""

    def record_in(self, copy: Any, original: Any) -> None:
        """Compile the functions that a copy reaches anew, so that they record distances here.

        Functions that the copy shares with the original stay as they are.
        """
        shared = {id(function) for function in _functions(original)}
        for function in list(_functions(copy)):
            if id(function) not in shared:
                with noting_faults("compiling comparisons anew"):
                    self.has_comparisons |= _compile_anew(function, self)

    def __call__(self, kind: str, file: str, line: int, column: int, a: Any, b: Any) -> Any:
        """Record how far a comparison is from its other outcome, and return its outcome."""
        result = _COMPARED[kind](a, b)
        try:
            held = np.asarray(result, bool)
            taken = {bool(held.any()), bool(held.all())}
        except Exception:  # operands are the user's objects: anything may happen in them
            return result
        for way in taken:
            self.least[file, line, column, way] = 0.0
        if len(taken) == 1:
            missed = file, line, column, not taken.pop()
            distance = _distance(a, b)
            if distance < self.least.get(missed, math.inf):
                self.least[missed] = max(distance, LEAST)
        return result


def _distance(a: Any, b: Any) -> float:
    """Return the least distance of two operands; infinity where they have none.

    Of numbers and arrays: the least absolute difference. Of texts: the letters that differ.
    """
    if isinstance(a, str):
        if isinstance(b, str):
            return float(sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)))
        if isinstance(b, list | tuple | set | frozenset | dict):
            return min((_distance(a, one) for one in b if isinstance(one, str)), default=math.inf)
        return math.inf
    try:
        with np.errstate(all="ignore"):
            least = np.abs(np.asarray(a, float) - np.asarray(b, float)).min()
    except Exception:  # as above
        return math.inf
    return float(least) if math.isfinite(least) else math.inf


class _Rewriter(ast.NodeTransformer):
    """Replaces comparisons of two operands by calls of the `Distances`."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return a call in place of a comparison of two operands; others unchanged."""
        self.generic_visit(node)
        kind = type(node.ops[0]).__name__
        if len(node.ops) != 1 or kind not in _COMPARED:
            return node
        place = (kind, self._file, node.lineno, node.col_offset)
        arguments: list[ast.expr] = [ast.Constant(value) for value in place]
        arguments += [node.left, node.comparators[0]]
        call = ast.Call(ast.Name(RECORDER, ast.Load()), arguments, [])
        return ast.copy_location(call, node)


def _functions(root: Any) -> Iterable[types.FunctionType]:
    """Yield the functions of the project's code that an object reaches."""
    for value, _ in reach((root, "")):
        if type(value) is types.FunctionType and is_project_file(value.__code__.co_filename):
            yield value


def _compile_anew(function: types.FunctionType, distances: Distances) -> bool:
    """Change a function's code so that its comparisons record distances; return whether it has any.

    Functions without source stay as they are, and so do those whose new code has other names.
    """
    code = function.__code__
    try:
        lines, _ = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return False
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return False
    if not any(isinstance(node, ast.Compare) for node in ast.walk(definition)):
        return False
    _strip_signature(definition)
    ast.increment_lineno(definition, code.co_firstlineno - 1)
    outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [_Rewriter(code.co_filename).visit(definition)]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & __future__.annotations.compiler_flag
    made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    for _ in range(2):  # the outer function, and the one in it
        made = next(const for const in made.co_consts if type(const) is types.CodeType)
    same_names = {*made.co_names} - {RECORDER} == {
        *code.co_names
    }  # private ones of classes are others
    if not same_names or made.co_freevars != code.co_freevars:
        return False
    if made.co_varnames != code.co_varnames:
        return False
    function.__globals__[RECORDER] = distances
    function.__code__ = made
    return True


def _strip_signature(definition: ast.FunctionDef) -> None:
    """Remove decorators, defaults and annotations, which the function object holds already."""
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    arguments.defaults = []
    arguments.kw_defaults = [None for _ in arguments.kwonlyargs]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
