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
STEPS = 20_000  # of one run or one search, each of which is quick
THOUSAND = 1_000  # objects in memory, or draws in a row in vain, of which there may be no end
DEEP = 20  # levels of containers, some of which hold themselves
NESTED = 5  # levels of containers inside of which each number counts
MILLION = 1_000_000  # numbers that are worked through at a time
MAX_BYTES = 2**25  # of outputs drawn at a time
CHUNK = 512  # runs that one process makes at a time
MAX_WORK = 8_192  # runs of an enumeration

# Runs on either input by which a line is blamed. More are surer of it and see what is rarer; a
# red build waits for them.
LOOK_RUNS = 24  # those which show what differs at all
TRIAL_RUNS = 2  # those which are made before anything is known: one may take a second
TRACED_RUNS = 80  # tracing makes a run many times slower
RUNS = 200  # those in which something has to be always the same
MANY_RUNS = 600  # those in which something is counted
NOT_BY_CHANCE = 5  # how often something has to come; fewer may be chance

# Texts and pictures. Longer ones show more, and hide the most telling among the rest.
LINE = 76
LABEL = 40  # what fits beside a bar, or into a sentence
SHORT_TEXT = 60  # beyond, a digest or "(...)" stands for the end
SHOWN_OUTPUTS = 8_000  # outputs by which a violation is shown; more would not change the picture

# Seconds. Longer waits help slow machines, and keep everybody else waiting.
STARTING_SECONDS = 25.0  # for a process or a cluster to start, to import and to answer
QUIET_SECONDS = 2.0  # before progress is shown
NOTICED_SECONDS = 0.25  # work that is worth another process, or makes an input slow
SLOW = 20.0  # times the quickest run: slow inputs are not proposed
BLAME_SECONDS = 3.0
TOLD_SECONDS = 5.0  # for what is shown of a violation that was soon found
HUNG_SECONDS = 5.0  # for a run that stands still, or a worker beyond its deadline
MOMENT = 0.1  # which nobody notices
START_WORKERS_FROM = 5.0  # of work: it takes as long to start them

# Shares of max_seconds. Larger ones leave less time for bets.
STEP_TIME = 0.05  # for a step beside the bets
SEARCH_TIME = 0.1  # for looking for inputs, and at them
LONG_STEP_TIME = 0.5  # for a step without which the rest is worth little
TIME_SHARE = 0.2  # for one batch, or of the time spent, for what is shown of a violation
RERUN_SHARE = 0.02  # runs made again, which show that some depend on others

# How many times as much, or how many standard errors, counts as more. Larger values miss what is
# only a little more, smaller ones take chance for it.
CLEARLY = 1.25
FAIR = 2.0  # how many times too small noise is, that a pass would have caught
CLEAR_ERRORS = 3.0
STANDS_OUT = 4.0  # errors of the best of thousands

# What rounding may do, relatively. Smaller values take rounding for a difference, larger ones
# neglect differences.
SINGLE_ERRORS = 2.0**-20  # of single precision, or of a long sum
EXACT_RESIDUAL = 1e-5  # share of its noise that an exact relation leaves
FLOAT_ERRORS = 2.0**-50  # of one operation or two
ROUNDED = 1e-12  # of conversions, and probability that may stay unknown
EQUAL = 1e-9  # after a few operations
NEARLY_EQUAL = 1e-6  # after sums, integrals, or what was printed and read
NEGLIGIBLE = 1e-15  # probability of what is left out
RARE = 1e-30  # the same where losses are added up
FAR = 1e6  # deviations beyond which all numbers count as the same
NO_LOSS = 1e-3  # nats that hardly any mechanism loses, and hardly any audit sees

# Inputs that are proposed. What they leave out is never seen; what is too far out always leaks.
COPIES = (2, 3, 10)  # how often a record is repeated
MOVES = (1, -1, 2, -2, 10, -10, 100, -100)  # by which an answer is moved
LONG_DATASET = 300  # records: longer datasets reach more, and make runs slower
LARGEST_NUMBER = 2.0**32  # beyond, floats are too coarse for the noise of most mechanisms

# Events that a person can read. Smaller shares show easier events, which prove less.
COST = {"form": 0.3, "interval": 0.5, "set": 0.5, "conjunction": 1.0}  # in units of rank
NEARLY = 0.97  # of a bound or a rank, for something as good
READABLE_WORTH = 0.7  # of the standard errors of a learned attack
KEPT_RANK = 0.8  # of how clearly an event breaks the claim, if it is simpler

# What refutes. Smaller values refute by chance, larger ones miss what is wrong.
SHOWN_ALPHA = 0.05  # error of a bound that is shown and decides nothing

# Shares of outputs. Larger ones take what is common for rare, or miss what holds with exceptions.
RARELY = 0.01
MOSTLY = 0.9

# Grids. Finer ones are more exact, and take longer.
THRESHOLDS = (0.002, 0.005, 0.01, *(k / 50 for k in range(1, 50)), 0.99, 0.995, 0.998)

# How an audit spends its samples: what one step takes, the others miss.
SMALL_SHARE = 0.05  # for pairs that a search proposed, the lesser side, or chunks made again
RESERVE = 0.1  # for counting the strongest attack, and for copies
SAMPLES_SHARE = 0.25  # for a search, or for shrinking
NEARLY_HALF = 0.4  # for StatDP's search; of the excess over a claim that a bound should reach
CHECK_GROWTH = 1.15  # of the samples between two looks whether to stop
OUTPUTS_PER_QUANTITY = 250  # with fewer a model learns noise by heart
MAX_BATCH = 500_000  # pairs of outputs in memory
TOTAL_ROOM, MIN_ROOM = 2_000_000, 50_000  # numbers kept on either input, and of each pair

# Shares of alpha. What either side loses is the logarithm of its share, of some 14 at alpha = 1e-6.
ALPHA_SHARE = 0.5  # for the divergence, beside events
PAIRED_SHARE = 0.98  # for counts in pairs; what is left is for counting again without them
COUPLED_SHARE = 0.95  # for bets on coupled draws; what is left is for a start without them
NOT_IID = 1e-9  # p-value: larger ones refuse right mechanisms, smaller ones let bound runs pass

# How far estimates are trusted. Larger values look elsewhere, smaller ones follow what was lucky.
CAUTIOUS = 1.5  # standard errors that the best of many events loses
