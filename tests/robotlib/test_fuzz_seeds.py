import pytest

from fuzz.fuzz_plan import run, seeds


@pytest.mark.parametrize("number", range(len(seeds())))
def test_seed(number):
    run(seeds()[number])
