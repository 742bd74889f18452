"""Each input of a search has one position, whatever it is."""

from __future__ import annotations

from pytest_dp.auditors.pool import Pool


class Odd:
    """An input that cannot be pickled: it is known by its id, which may be given again."""

    def __init__(self, number):
        self.number = number

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot be pickled")

    def __deepcopy__(self, memo):
        return Odd(self.number)


def test_inputs_without_a_pickle_keep_their_positions():
    pool = Pool()
    assert [pool.add(Odd(number)) for number in range(50)] == list(range(50))
    assert [given.live.number for given in pool.inputs] == list(range(50))


def test_equal_inputs_share_a_position():
    pool, odd = Pool(), Odd(1)
    assert [pool.add(data) for data in ([1, 2], [1], [1, 2], odd, [1], odd)] == [0, 1, 0, 2, 1, 2]
