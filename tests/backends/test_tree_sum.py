"""The fixed order in which statistics of chunks are summed."""

from functools import reduce

import pytest

from countinggrids.backends.base import FAN, HIGHER, tree_sum


@pytest.mark.parametrize("n_parts", [1, 2, 7, 8, 9, 64, 65, 200])
def test_parts_are_added_in_one_fixed_tree(n_parts):
    def plus(total, part):
        return f"({total}+{part})"

    wanted, fan = [str(n) for n in range(n_parts)], FAN
    while len(wanted) > 1:
        wanted, fan = [reduce(plus, wanted[i : i + fan]) for i in range(0, len(wanted), fan)], HIGHER
    assert tree_sum(map(str, range(n_parts)), plus) == wanted[0]


def test_few_sums_are_held_while_adding_up():
    class Sum:
        alive = 0
        most = 0

        def __init__(self):
            Sum.alive += 1
            Sum.most = max(Sum.most, Sum.alive)

        def __del__(self):
            Sum.alive -= 1

        def plus(self, other):
            return self

    tree_sum((Sum() for _ in range(64)), Sum.plus)
    assert Sum.most == 4
