"""Rules for ensembles."""

import pytest

from naiad_config.text import parse_text
from naiad_config.validation import problems

IN = 'input { name: "in" data_type: TYPE_FP32 dims: 4 } '
OUT = 'output { name: "out" data_type: TYPE_FP32 dims: 4 } '
UNWRITTEN = "output 'out' for ensemble 'e' is not written"
HEAD = 'name: "e" platform: "ensemble" '


def step(reads, writes):
    inputs = f'input_map {{ key: "i" value: "{reads}" }}'
    outputs = f'output_map {{ key: "o" value: "{writes}" }}'
    return f'step {{ model_name: "a" {inputs} {outputs} }} '


def problems_of(text):
    return [(problem.path, problem.message) for problem in problems(parse_text(text))]


def test_a_chain_of_steps_in_any_order_has_no_problems():
    text = f"{HEAD} {IN} {OUT} ensemble_scheduling {{ {step('mid', 'out')} {step('in', 'mid')} }}"

    assert problems_of(text) == []


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            step("in", "out") + step("in", "out"),
            [
                (
                    'ensemble_scheduling.step[1].output_map["o"]',
                    "ensemble tensor 'out' can appear in an output map only once for ensemble 'e' step 1",
                )
            ],
        ),
        (
            step("mid", "out"),
            [
                ("input[0].name", "ensemble input 'in' for ensemble 'e' is not used"),
                (
                    "output[0].name",
                    f"{UNWRITTEN}: at least one of its depending tensors, 'mid', is not connected",
                ),
            ],
        ),
        (
            step("in", "mid"),
            [
                (
                    'ensemble_scheduling.step[0].output_map["o"]',
                    "ensemble tensor 'mid' is unused in ensemble 'e'",
                ),
                ("output[0].name", "ensemble output 'out' for ensemble 'e' is not used"),
            ],
        ),
        (
            step("in", "mid") + step("out", "more") + step("more", "mid2") + step("mid2", "more2") + step("more2", "x"),
            [
                ('ensemble_scheduling.step[0].output_map["o"]', "ensemble tensor 'mid' is unused in ensemble 'e'"),
                ('ensemble_scheduling.step[4].output_map["o"]', "ensemble tensor 'x' is unused in ensemble 'e'"),
                ("output[0].name", UNWRITTEN),
            ],
        ),
    ],
)
def test_steps_must_connect_inputs_and_outputs(steps, expected):
    assert problems_of(f"{HEAD} {IN} {OUT} ensemble_scheduling {{ {steps} }}") == expected


def test_steps_that_wait_for_each_other_write_nothing():
    text = f"{HEAD} {IN} {OUT} ensemble_scheduling {{ {step('in', 'x')} {step('out', 'y')} {step('y', 'out')} }}"

    assert ("output[0].name", UNWRITTEN) in problems_of(text)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (HEAD, "platform", "ensemble scheduling must be set for ensemble e whose platform is ensemble"),
        (
            'name: "e" platform: "x" ensemble_scheduling { }',
            "ensemble_scheduling",
            "ensemble scheduling cannot be set for model 'e' whose platform is not ensemble",
        ),
        (f"{HEAD} ensemble_scheduling {{ }}", "ensemble_scheduling", "must specify 'step' for ensemble 'e'"),
        (
            f'{HEAD} ensemble_scheduling {{ step {{ model_name: "a" output_map {{ key: "o" value: "out" }} }} }} {OUT}',
            "ensemble_scheduling.step[0]",
            "must specify 'input_map' in step 0 of ensemble 'e'",
        ),
        (
            f'{HEAD} backend: "b" {IN} {OUT} ensemble_scheduling {{ {step("in", "out")} }}',
            "backend",
            "Ensemble model 'e' must have platform type 'ensemble' and empty backend type",
        ),
        (
            f"{HEAD} instance_group {{ }} {IN} {OUT} ensemble_scheduling {{ {step('in', 'out')} }}",
            "instance_group",
            "instance group should not be specified for ensemble 'e'",
        ),
        (
            f"{HEAD} optimization {{ }} {IN} {OUT} ensemble_scheduling {{ {step('in', 'out')} }}",
            "optimization",
            "optimization should not be specified for ensemble 'e'",
        ),
        (
            f"{HEAD} model_warmup {{ }} {IN} {OUT} ensemble_scheduling {{ {step('in', 'out')} }}",
            "model_warmup",
            "model_warmup can not be specified for ensemble 'e'",
        ),
    ],
)
def test_ensemble_rules(text, path, message):
    assert problems_of(text) == [(path, message)]
