"""The conformance suite of backends: one parametrised test that every backend runs with small models of its own.

The test of a backend:

    @pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
    def test_the_backend_conforms(case, tmp_path):
        case.check(tmp_path)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from naiad_testing import backend_checks as checks
from naiad_testing.backend_models import DATATYPES, BackendSuite, SuiteModel, Trial

__all__ = ["DATATYPES", "BackendSuite", "ConformanceCase", "SuiteModel", "backend_cases"]


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """One check of a suite; its text names the check."""

    name: str
    suite: BackendSuite
    run: Callable[[Trial], None]

    def check(self, directory: Path) -> None:
        """Run the check in an empty folder. Raises ContractBroken, an AssertionError that says what differs."""
        self.run(Trial(self.suite, directory))

    def __str__(self) -> str:
        return self.name


def backend_cases(suite: BackendSuite) -> Sequence[ConformanceCase]:
    """The checks for the models that the suite has, for `pytest.mark.parametrize`."""
    return [ConformanceCase(name, suite, run) for name, run in _checks(suite)]


def _checks(suite: BackendSuite) -> Iterator[tuple[str, Callable[[Trial], None]]]:
    if suite.frameworks:
        yield "imports", checks.check_imports
    yield from {
        "contract": checks.check_contract,
        "completion": checks.check_completion,
        "outputs": checks.check_outputs,
        "missing file": checks.check_missing_file,
    }.items()
    if suite.served_with != ():
        yield "served", checks.check_served
    if suite.describes_tensors:
        yield "contradictions", checks.check_contradictions
    if suite.parameter:
        yield "parameters", checks.check_parameters
    if not suite.gpu_here:
        yield "no gpu", checks.check_gpu
    if suite.identity is not None:
        for datatype in suite.datatypes:
            yield datatype, partial(checks.check_datatype, model=suite.identity(datatype, "-1"), datatype=datatype)
        yield "variable dims", partial(checks.check_variable_dims, model=suite.identity("FP32", "-1"))
        if suite.describes_tensors:
            yield "narrow dims", partial(checks.check_narrow_dims, model=suite.identity("FP32", "3"))
    for name, model, check in (
        ("one bad request", suite.lookup, checks.check_failing_requests),
        ("sequence", suite.sequence, checks.check_sequence),
        ("ragged batch", suite.ragged, checks.check_ragged),
        ("optional input", suite.optional, checks.check_optional),
    ):
        if model is not None:
            yield name, partial(check, model=model)
