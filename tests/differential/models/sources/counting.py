"""Counts in metrics of its own, and answers with where they stand."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily
        self.families = [
            family(name="own_numbers", description='Numbers, "added up"', kind=family.COUNTER),
            family(name="own_level", description="The last number", kind=family.GAUGE),
            family(name="own_nothing", description="A family without a metric", kind=family.GAUGE),
        ]
        labels = {"model": args["model_name"], "quoted": 'a "b" \\ c'}
        self.numbers = self.families[0].Metric(labels=labels)
        self.same = self.families[0].Metric(labels=labels)
        self.other = self.families[0].Metric(labels={"model": "other"})
        self.level = self.families[1].Metric()

    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]

    def _answer(self, values):
        number = int(values[0])
        self.numbers.increment(number)
        self.same.increment(0.5)
        self.level.set(number)
        self.level.increment(-0.25)
        value = np.array([self.numbers.value() + self.level.value()])
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)])
