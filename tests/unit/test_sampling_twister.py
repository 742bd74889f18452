"""The state of ``np.random`` as it is known without reading all of it."""

import numpy as np
import pytest

from pytest_dp.sampling.twister import Twister


@pytest.mark.slow
def test_the_state_is_what_numpy_says_after_whatever_happened():
    source = np.random.RandomState(1)
    twister, steps = Twister(source), np.random.default_rng(2)
    for _ in range(300):
        assert str(twister.state()) == str(source.get_state(legacy=False))
        match int(steps.integers(5)):
            case 0:
                source.random()
            case 1:
                source.normal()
            case 2:
                source.normal(size=700)
            case 3:
                source.seed(int(steps.integers(3)))
                twister.forget()
            case _:
                source.set_state(np.random.RandomState(3).get_state())
                twister.forget()


def test_a_state_is_not_read_again_while_nothing_was_drawn():
    source = np.random.RandomState(1)
    twister = Twister(source)
    state = twister.state()
    assert twister.state() is state
    source.random()
    assert twister.state() is not state


@pytest.mark.parametrize("draw", ["random", "normal", "standard_gamma", "bytes"])
def test_words_change_with_every_draw(draw):
    source = np.random.RandomState(1)
    twister = Twister(source)
    seen = {twister.words()}
    for _ in range(3):
        arguments = {"standard_gamma": (2.0,), "bytes": (4,)}.get(draw, ())
        getattr(source, draw)(*arguments)
        source.random()
        seen.add(twister.words())
    assert len(seen) == 4


def test_other_bit_generators_have_no_words():
    twister = Twister(np.random.RandomState(np.random.PCG64(1)))
    assert twister.words() == b""
    assert str(twister.state()) == str(twister.source.get_state(legacy=False))
