"""Runs over random graphs: properties that hold for each of them."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from naiad_scheduler_ensemble.composition import EnsembleComposition, compose
from naiad_scheduler_ensemble.moves import EnsembleResponse, Moves, StepStart

from .conftest import ensemble, model, step
from .runs import Named, values


@dataclass(frozen=True)
class Case:
    """An ensemble whose steps are written in that `order`; what each reads, and which are decoupled, by its number."""

    composed: EnsembleComposition
    order: list[int]
    reads: list[list[int]]
    decoupled: list[bool]
    requested: tuple[str, ...]
    expected: tuple[str, ...]

    def needed(self) -> set[int]:
        """The steps that lead to the requested outputs."""
        tensors, results = [int(name[1:]) for name in self.expected], set[int]()
        while tensors:
            number = tensors.pop()
            if number >= 0 and number not in results:
                results.add(number)
                tensors += [each for each in self.reads[number] if each >= 0]
        return results

    def origin(self, number: int) -> int:
        """The decoupled step whose responses make a step run, -1 for none."""
        for each in self.reads[number]:
            if each >= 0:
                result = each if self.decoupled[each] else self.origin(each)
                if result >= 0:
                    return result
        return -1


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Steps that read the input (-1) or earlier steps; step 3 writes t3. A tensor that no step reads is an output."""
    count = draw(st.integers(1, 7))
    decoupled = draw(st.lists(st.booleans() if draw(st.booleans()) else st.just(False), min_size=count, max_size=count))
    reads: list[list[int]] = []
    origins: list[int] = []
    for number in range(count):
        sources = draw(st.lists(st.integers(-1, number - 1), min_size=1, max_size=3, unique=True))
        of = {each: -1 if each < 0 else each if decoupled[each] else origins[each] for each in sources}
        origins.append(max(of.values()))  # inputs of different decoupled steps are refused; those of one are kept
        reads.append([each for each in sources if of[each] in (-1, origins[-1])])
    read = {each for inputs in reads for each in inputs}
    outputs = [f"t{number}" for number in range(count) if number not in read or draw(st.booleans())]
    requested = tuple(draw(st.lists(st.sampled_from(outputs), unique=True)))
    models, steps = [], []
    for number, inputs in enumerate(reads):
        names = [f"x{index}" for index in range(len(inputs))]
        models.append(model(" ".join(names), "y", name=f"m{number}", decoupled=decoupled[number]))
        tensors = ["IN" if each < 0 else f"t{each}" for each in inputs]
        mapped = " ".join(f"{name}={tensor}" for name, tensor in zip(names, tensors, strict=True))
        steps.append(step(f"m{number}", mapped, f"y=t{number}"))
    order = draw(st.permutations(range(count)))
    config = ensemble("IN", " ".join(outputs), [steps[number] for number in order])
    composed = compose(config, [models[number] for number in order])
    return Case(composed, order, reads, decoupled, requested, requested or tuple(outputs))


class Driven:
    """A run whose steps answer in an order that chance chooses, decoupled ones any number of times."""

    def __init__(self, case: Case, data: st.DataObject) -> None:
        self.starts: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self.responses: list[EnsembleResponse] = []
        self._case = case
        self._waiting: list[StepStart] = []
        run = case.composed.run(values("IN"), case.requested)
        self._take(run.begin())
        while self._waiting:
            start = data.draw(st.sampled_from(self._waiting))
            number = case.order[start.step]
            final, outputs = True, {"y": Named(f"{number}")}
            if case.decoupled[number]:
                final = self.answers[number] >= 4 or data.draw(st.booleans())
                outputs = outputs if not final or data.draw(st.booleans()) else {}
            if final:
                self._waiting.remove(start)
            self.answers[number] += bool(outputs)
            self._take(run.answered(start, outputs, final))

    def _take(self, moves: Moves) -> None:
        assert not moves.failure
        assert not any(response.final for response in self.responses)
        self.starts.update(self._case.order[start.step] for start in moves.starts)
        self._waiting += moves.starts
        self.responses += moves.responses


@settings(max_examples=60)
@given(cases(), st.data())
def test_each_step_that_is_needed_runs_once_in_each_iteration_and_no_other_runs(
    case: Case, data: st.DataObject
) -> None:
    driven = Driven(case, data)

    for number in range(len(case.reads)):
        origin = case.origin(number)
        times = 1 if origin < 0 else driven.answers[origin]
        assert driven.starts[number] == (times if number in case.needed() else 0)


@settings(max_examples=60)
@given(cases(), st.data())
def test_the_last_response_is_final_and_no_other_is(case: Case, data: st.DataObject) -> None:
    driven = Driven(case, data)

    finals = [response.final for response in driven.responses]

    assert finals[-1:] == [True]
    assert finals.count(True) == 1


@settings(max_examples=60)
@given(cases(), st.data())
def test_without_decoupled_steps_there_is_one_response_with_all_that_was_asked_for(
    case: Case, data: st.DataObject
) -> None:
    driven = Driven(case, data)

    if not any(case.decoupled):
        (response,) = driven.responses
        assert set(response.outputs) == set(case.expected)
