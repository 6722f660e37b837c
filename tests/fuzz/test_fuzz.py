"""Every harness for a moment: its seeds, every case that once failed, and some thousand mutations."""

import base64
import random
import time

import pytest

from fuzz.mutation import inputs
from fuzz.run import CASES, KEPT, KEPT_BYTES, KEPT_INPUTS, NAMES, corpus, harness

INPUTS = 2_000
ENOUGH_S = 3.0  # a busy machine tries fewer; the seeds and cases are always tried
MIN_MUTATIONS = 50


@pytest.mark.parametrize("name", NAMES)
def test_nothing_undocumented_comes_out(name):
    module = harness(name)
    start = corpus(name, module)
    began = time.monotonic()
    for count, data in enumerate(inputs(start, random.Random(2026))):
        module.run(data)
        mutations = count + 1 - len(start)
        if mutations >= INPUTS or (mutations >= MIN_MUTATIONS and time.monotonic() - began > ENOUGH_S):
            break


def test_every_case_belongs_to_a_harness():
    names = {path.name for path in CASES.iterdir()} if CASES.is_dir() else set()
    assert names <= set(NAMES)


def test_the_kept_corpus_is_small_and_read():
    files = list(KEPT.iterdir())
    assert {path.stem for path in files} == set(NAMES)
    for path in files:
        kept = [base64.b64decode(line) for line in path.read_text("ascii").split()]
        assert len(kept) <= KEPT_INPUTS
        assert max(map(len, kept)) <= KEPT_BYTES
        assert set(kept) <= set(corpus(path.stem, harness(path.stem)))


def test_the_same_seed_tries_the_same_inputs():
    def first(seed):
        tried = inputs([b"abc", b"{}"], random.Random(seed))
        return [next(tried) for _ in range(50)]

    assert first(1) == first(1) != first(2)
