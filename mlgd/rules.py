"""The numbers that decide a run without constants, each with its unit and with what it trades.

They were chosen on the quality bench (`make quality`). tests/library/test_rules.py moves some by a
third and asks that a run notices. FINEST_SOLVED, FIRST_LOOK, JUMPS_COUNT and JUMPS_LAST moved by a
third changed none of some 140 runs: they are the first to ask whether they may go.
"""

# --- when a run is done ---

# Of eps: what is believed must be this small. An estimate is off by a factor of about two; a
# smaller share costs more, a larger one promises falsely.
AIM = 0.5

# A level is expensive if its price is at least so many times that of the level before. Below one,
# the aim is laxer, since going up costs more than evidence at hand is worth.
EXPENSIVE = 8.0
AIM_BELOW_EXPENSIVE = 0.75

# Of eps: what a radius may hide of the loss, so that directions flatter than that need no accuracy.
HIDDEN_BY_RADIUS = 0.5

# --- when a level is left ---

# Of eps: so little is left on the coarsest level before the next one is asked. More accuracy there
# is cheap, and what increments are worth is told at its end.
COARSEST_SOLVED = 0.05

# Of the tail: with less than this left on it, a level is left. Errors beyond it cost more.
LEVEL_SOLVED = 0.75

# Of eps: so little is left on the finest level before eps is given up.
FINEST_SOLVED = 0.05

# Steps: none of so many is better by a tenth than the best of as many before: no step helps here.
# On a finest level that is exact the wait is much longer: no other level comes.
PLATEAU = 6
PLATEAU_BETTER = 0.9
WAIT_ON_EXACT = 50

# Steps on a level before their gains are told to fall as a series.
GAINS_TELL = 4

# --- curvature ---

# Of what gradients cost: as much may be spent on Lanczos before the end. It spares gradients of
# fine levels by products of coarse ones.
CURVATURE_SHARE = 0.5

# Products with a Hessian in one look: they resolve conditions of about 1e4.
PRODUCTS = 120
FIRST_LOOK = 40  # products that the first look is expected to take
PROBES = 6  # evaluations of a look beside its products

# Of |v| over twice the way made: eigenvalues below it are raised. No minimizer is assumed to lie
# twenty ways farther on.
FLATTEST = 0.1

# A loss is not told by its curvature if it would be so many times as large, were the raised
# eigenvalues a quarter. A smaller factor promises less often: from 2 to 1.5 half as many false
# promises, and a thirtieth fewer true ones.
RAISED_SHARE = 0.25
RAISED_MATTERS = 1.5

# Of the first gradient: if increments at both ends of the way to the coarsest minimizer differ by
# more, the coarsest level's curvature misleads.
MISLEADS = 0.5

# --- increments ---

# Of the increment before: one that is larger has not fallen.
SLOWEST_FALL = 0.95

# Of the increment before: a fall that was seen only once is not believed to go on faster (one seen
# twice, half of it), and what older increments said is not believed to be over faster. A smaller
# one trusts a lucky small increment, a larger one asks levels for nothing where errors fall fast.
FASTEST_FALL = 0.55

# Of an error's square: a share that is new at every point counts from here on, and at most so much
# of it is averaged away by steps.
JUMPS_COUNT = 0.02
JUMPS_LAST = 0.25

# --- the end ---

# Of what was paid: a last check against the start is made where it costs no more.
LAST_CHECK = 0.05
