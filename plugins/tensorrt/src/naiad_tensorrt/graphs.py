"""CUDA graph specifications of a configuration: complete shapes, and the profiles that fit them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from naiad.errors import ConfigError, Problem
from naiad_config import CudaGraphShape, CudaGraphSpec, ModelConfig, OptimizationCuda
from naiad_kit.backends.interface import shape_text
from naiad_tensorrt.choices import profile_for
from naiad_tensorrt.description import EngineDescription, EngineTensor, Profile, Shape
from naiad_tensorrt.options import GraphSpec

_PATH = "optimization.cuda.graph_spec"


def graph_specs(config: ModelConfig, description: EngineDescription, profiles: Sequence[int]) -> tuple[GraphSpec, ...]:
    """The graphs to capture for instances that run on these profiles; () where `optimization.cuda.graphs` is not set.

    Without `graph_spec`, there is one for each batch size that is likely: 1, the preferred ones and the largest, and
    dims that vary are those at the optimum of the first profile. A graph that fits the profiles of other groups alone
    is theirs. Raises ConfigError with all that fits none.
    """
    cuda = config.optimization.cuda if config.optimization is not None else None
    if cuda is None or not cuda.graphs:
        return ()
    maker = _Maker(config, description, profiles)
    specs = list(maker.written(cuda) if cuda.graph_spec else maker.likely())
    if maker.problems:
        raise ConfigError(maker.problems)
    return tuple(spec for position, spec in enumerate(specs) if spec not in specs[:position])


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The shapes and values of all inputs, at one end of a graph's range."""

    shapes: Mapping[str, Shape]
    values: Mapping[str, Shape]


class _Maker:
    """Makes the graphs of one configuration; `problems` is what is wrong with it."""

    def __init__(self, config: ModelConfig, description: EngineDescription, profiles: Sequence[int]) -> None:
        self._config = config
        self._inputs = description.inputs
        self._profiles = [description.profiles[index] for index in profiles]
        others = {int(text) for group in config.instance_group for text in group.profile or ("0",)}
        self._all = [each for each in description.profiles if each.index in {*profiles, *others}]
        self._whole = _whole_inputs(config)
        self.problems: list[Problem] = []

    def written(self, cuda: OptimizationCuda) -> Iterator[GraphSpec]:
        for index, spec in enumerate(cuda.graph_spec):
            path = f"{_PATH}[{index}]"
            if self._is_sound(spec, path):
                yield from self._specified(spec, path)

    def likely(self) -> Iterator[GraphSpec]:
        config = self._config
        preferred = config.dynamic_batching.preferred_batch_size if config.dynamic_batching is not None else ()
        batches = sorted({1, config.max_batch_size, *preferred}) if config.max_batch_size > 0 else [0]
        best = self._profiles[0]
        for batch in batches:
            sizes = self._sizes(batch, {}, best)
            chosen = profile_for(sizes.shapes, sizes.values, self._profiles)
            if chosen is not None:
                yield _spec(chosen, sizes, sizes)

    def _specified(self, spec: CudaGraphSpec, path: str) -> Iterator[GraphSpec]:
        bound = spec.graph_lower_bound
        top = self._sizes(spec.batch_size, spec.input)
        least = top if bound is None else self._sizes(bound.batch_size, {**spec.input, **bound.input})
        problem = self._contradiction(top, least)
        if not problem and profile_for(top.shapes, top.values, self._all) is None:
            problem = f"fits none of the profiles {', '.join(str(each.index) for each in self._all)}"
        if problem:
            self.problems.append(
                Problem(f"this graph {problem}", path, hint="compare it with the profiles of the engine")
            )
            return
        chosen = profile_for(top.shapes, top.values, self._profiles)
        for profile in self._profiles:
            takes = profile_for(top.shapes, top.values, [profile]) is not None
            # batches of one shape run on one profile; smaller ones, down to the bound, may run on another
            if takes and (profile.index == chosen or least != top):
                yield _spec(profile.index, top, least)

    def _is_sound(self, spec: CudaGraphSpec, path: str) -> bool:
        known = len(self.problems)
        self._check_batch(spec.batch_size, f"{path}.batch_size")
        self._check_dims(spec.input, f"{path}.input", required=True)
        if spec.graph_lower_bound is not None:
            self._check_batch(spec.graph_lower_bound.batch_size, f"{path}.graph_lower_bound.batch_size")
            self._check_dims(spec.graph_lower_bound.input, f"{path}.graph_lower_bound.input", required=False)
        return len(self.problems) == known

    def _check_batch(self, size: int, path: str) -> None:
        most = self._config.max_batch_size
        if most > 0 and not 1 <= size <= most:
            self.problems.append(Problem(f"the batch size must be from 1 to max_batch_size {most}, not {size}", path))
        elif most == 0 and size != 0:
            self.problems.append(Problem(f"the batch size must be 0 for a model that does not batch, not {size}", path))

    def _check_dims(self, graph_shapes: Mapping[str, CudaGraphShape], path: str, required: bool) -> None:
        inputs = {tensor.name: tensor for tensor in self._inputs}
        for name in graph_shapes.keys() - inputs.keys():
            message = f"the engine has no input '{name}'"
            self.problems.append(Problem(message, f"{path}[{name}]", hint=f"its inputs are {', '.join(inputs)}"))
        for name, tensor in inputs.items():
            own = self._own_dims(tensor)
            if name in graph_shapes and len(graph_shapes[name].dim) != len(own):
                dims = shape_text(graph_shapes[name].dim)
                message = f"input '{name}' takes {len(own)} dims {shape_text(own)} here, not {dims}"
                self.problems.append(Problem(message, f"{path}[{name}]", hint="leave the batch dimension out"))
            elif name not in graph_shapes and required and -1 in own:
                message = (
                    f"input '{name}' has variable dims {shape_text(own)}, and the graph does not say which to take"
                )
                self.problems.append(Problem(message, path, hint=f"add input {{ key: '{name}' value {{ dim: … }} }}"))

    def _sizes(self, batch: int, graph_shapes: Mapping[str, CudaGraphShape], best: Profile | None = None) -> _Sizes:
        shapes: dict[str, Shape] = {}
        values: dict[str, Shape] = {}
        for tensor in self._inputs:
            name, rows = tensor.name, self._has_rows(tensor)
            dims = tuple(graph_shapes[name].dim) if name in graph_shapes else self._own_dims(tensor)
            if best is not None:
                dims = _at_optimum(tensor, dims, best, rows)
            whole = (batch, *dims) if rows else dims
            if tensor.is_shape_tensor:
                values[name], shapes[name] = whole, tensor.dims
            else:
                shapes[name] = whole
        return _Sizes(shapes, values)

    def _own_dims(self, tensor: EngineTensor) -> Shape:
        """The dims of an input in a graph, without batch; -1 for each value of a shape tensor."""
        own = (-1,) * (tensor.dims[0] if tensor.dims else 1) if tensor.is_shape_tensor else tensor.dims
        return own[1:] if self._has_rows(tensor) else own

    def _has_rows(self, tensor: EngineTensor) -> bool:
        return self._config.max_batch_size > 0 and tensor.name not in self._whole

    def _contradiction(self, top: _Sizes, least: _Sizes) -> str:
        if least.values != top.values:
            return "has other values of a shape tensor at its lower bound, which a captured graph cannot change"
        for name, shape in least.shapes.items():
            if any(low > high for low, high in zip(shape, top.shapes[name], strict=True)):
                return (
                    f"has a lower bound above its shape for input '{name}': {shape_text(shape)} and "
                    f"{shape_text(top.shapes[name])}"
                )
        return ""


def _spec(profile: int, top: _Sizes, least: _Sizes) -> GraphSpec:
    return GraphSpec(profile, top.shapes, least.shapes, top.values)


def _at_optimum(tensor: EngineTensor, dims: Shape, best: Profile, rows: bool) -> Shape:
    ranges = best.values if tensor.is_shape_tensor else best.shapes
    if tensor.name not in ranges:
        return dims
    optimum = ranges[tensor.name][1][1 if rows else 0 :]
    return tuple(other if dim == -1 else dim for dim, other in zip(dims, optimum, strict=True))


def _whole_inputs(config: ModelConfig) -> frozenset[str]:
    """The inputs that do not hold one row for each item of a batch."""
    ragged = {entry.name for entry in config.input if entry.allow_ragged_batch}
    generated = {name for entry in config.batch_input for name in entry.target_name}
    return frozenset(ragged | generated)
