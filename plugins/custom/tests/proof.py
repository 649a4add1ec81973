"""Proof of naiad-custom alone beside the kernel, in an environment of its own."""

import naiad_custom
from naiad_custom.include import include_dir
from naiad_testing import serve


@naiad_custom.model
def double(x: naiad_custom.Array[naiad_custom.FP32, 2]) -> naiad_custom.Array[naiad_custom.FP32, 2]:
    return x + x


with serve(double) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out


assert (include_dir() / "naiad_custom.h").is_file()
