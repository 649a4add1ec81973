"""What holds for all tests: random examples are the same in each run, and no example has a time limit."""

from contextlib import suppress

with suppress(ImportError):  # the environment for Ray has no Hypothesis
    from hypothesis import settings

    # `--hypothesis-profile=default` tries other examples; its limits of 200 ms an example and 1 s for the input
    # fail on a machine that has other work
    settings.load_profile("ci")
