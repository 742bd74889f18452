"""What samples are drawn for: the first part of the key of each stream of random numbers."""

from enum import IntEnum, unique


@unique
class Purpose(IntEnum):
    """No two purposes have random numbers in common, as their keys begin with another number."""

    TRIAL = 0
    """To see how a mechanism draws its random numbers."""
    SEARCH = 1
    """To learn attacks from, and to rank pairs."""
    TEST = 2
    """To be tested: none of them was ever searched."""
    CHOICE = 3
    """To place the threshold of an attack."""
    POWER = 4
    """To estimate the power of an attack."""
    BET = 5
    """To be bet on."""
    RESTART = 6
    """To be bet on anew, after random numbers turned out not to be shared."""
    PAIRED_TEST = 7
    """To be tested in pairs, with the same random numbers on both inputs."""
    DIVERGENCE = 8
    """To bound a divergence."""
    SMALLER = 9
    """To be bet on, on smaller pairs; each pair gets the same random numbers."""
    COPY = 10
    """To be drawn by copies of the mechanism that start afresh."""
    ANALYSED = 11
    """To check what was traced."""
    HIDDEN = 12
    """For generators that are found nowhere but in the memory of a process."""
    OBSERVE = 13
    """To see which code an input runs."""
