"""Numbers that were chosen by hand, for all rooms: each says what becomes worse if it is changed.

Any other number is derived, and says from what, or stands where it is used, with the same said.
"""

# How many of a kind: by what one of them costs. More find what fewer miss, and take longer.
FEW = 3  # each takes a line of a report, or as long as a small audit
SEVERAL = 8  # each takes dozens of runs
DOZENS = 24  # each takes a few runs
MANY = 64  # each takes a run, or is a feature to learn from
HUNDREDS = 256  # each takes a look
MAX_PAIRS = 512  # pairs of inputs: no audit has samples for more
POOL = 200  # drawn, or found, to choose from
PATIENCE = 40  # mutations in a row that may show nothing new
THOUSAND = 1_000  # objects in memory, or draws in a row in vain, of which there may be no end
NESTED = 5  # levels of containers inside of which each number counts
MILLION = 1_000_000  # numbers that are worked through at a time

# Texts and pictures. Longer ones show more, and hide the most telling among the rest.
LINE = 76
LABEL = 40  # what fits beside a bar, or into a sentence
SHORT_TEXT = 60  # beyond, a digest or "(...)" stands for the end

# Seconds. Longer waits help slow machines, and keep everybody else waiting.
STARTING_SECONDS = 25.0  # for a process or a cluster to start, to import and to answer
NOTICED_SECONDS = 0.25  # work that is worth another process, or makes an input slow
SLOW = 20.0  # times the quickest run: slow inputs are not proposed
MOMENT = 0.1  # which nobody notices

# Shares of max_seconds. Larger ones leave less time for bets.
SEARCH_TIME = 0.1  # for looking for inputs, and at them

# How many times as much, or how many standard errors, counts as more. Larger values miss what is
# only a little more, smaller ones take chance for it.
CLEARLY = 1.25

# What rounding may do, relatively. Smaller values take rounding for a difference, larger ones
# neglect differences.
RARE = 1e-30  # the same where losses are added up
NO_LOSS = 1e-3  # nats that hardly any mechanism loses, and hardly any audit sees

# Inputs that are proposed. What they leave out is never seen; what is too far out always leaks.
COPIES = (2, 3, 10)  # how often a record is repeated
MOVES = (1, -1, 2, -2, 10, -10, 100, -100)  # by which an answer is moved
LONG_DATASET = 300  # records: longer datasets reach more, and make runs slower
LARGEST_NUMBER = 2.0**32  # beyond, floats are too coarse for the noise of most mechanisms

# What refutes. Smaller values refute by chance, larger ones miss what is wrong.
SHOWN_ALPHA = 0.05  # error of a bound that is shown and decides nothing

# Shares of outputs. Larger ones take what is common for rare, or miss what holds with exceptions.
RARELY = 0.01
