"""How the statistics extension writes a model's counters."""

from naiad_http.routes.statistics import statistics_json
from naiad_statistics.reports import Duration, ModelStatistics, ResponseStatistics

NOTHING = {"count": 0, "ns": 0}


def counted(**more):
    none = Duration()
    return ModelStatistics("m", 1, 0, 0, 0, none, none, none, none, none, none, none, none, **more)


def test_responses_are_written_by_their_index_with_every_duration():
    statistics = counted(
        response_stats={"0": ResponseStatistics(compute_infer=Duration(2, 70), success=Duration(2, 79))}
    )

    written = statistics_json(statistics)["response_stats"]

    assert written == {
        "0": {
            "compute_infer": {"count": 2, "ns": 70},
            "compute_output": NOTHING,
            "success": {"count": 2, "ns": 79},
            "fail": NOTHING,
            "empty_response": NOTHING,
            "cancel": NOTHING,
        }
    }


def test_a_model_that_answers_once_has_no_entry_for_responses():
    assert statistics_json(counted())["response_stats"] == {}
