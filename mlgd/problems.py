"""What is known before running: constants of the loss, the law of prices, and spectral measures where they were taken."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .hierarchy import Hierarchy, first_level, positive
from .lazy import formulas as F

if TYPE_CHECKING:
    from .estimates import Measures


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known before running: smoothness, distance to a minimizer, and the law of prices (c/accuracy)^gamma.

    mu > 0 makes it strongly convex. `first` is the coarsest level on offer, the paper's k_min unless given. `measures`
    are those of `estimate`, for plans with promise='measured'.

    >>> Problem(beta=1, d0=2, gamma=3, c=0.5).regime
    'HTMC'
    """

    beta: float
    d0: float
    gamma: float
    c: float
    mu: float = 0.0
    first: int | None = None
    measures: "Measures | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        for name in ("beta", "d0", "gamma", "c"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if not (isinstance(self.mu, int | float) or hasattr(self.mu, "dtype")) or not 0 <= self.mu <= self.beta:
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        object.__setattr__(self, "mu", float(self.mu))
        if self.first is None:
            object.__setattr__(self, "first", first_level(self.c))
        elif not isinstance(self.first, int) or isinstance(self.first, bool):
            raise ValueError(f"first must be a level, an integer; got {self.first!r}")
        if self.measures is not None and not hasattr(self.measures, "increments"):
            raise ValueError(f"measures must be those of estimate(h, y0), scale.measures; got {self.measures!r}")

    @property
    def regime(self) -> str:
        """'ETMC', 'MC' or 'HTMC'."""
        return F.regime(self.gamma)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices only, nothing to evaluate."""
        finest = math.ceil(-math.log2(positive("delta", delta)))
        if 2.0 ** (1 - finest) <= delta * (1 + 1e-12):  # delta is a level's accuracy up to rounding
            finest -= 1
        finest = max(self.first, finest)
        return Hierarchy(_no_gradient, lambda k: (self.c * 2.0**k) ** self.gamma, range(self.first, finest + 1))

    def rounded(self, delta: float) -> float:
        """The accuracy of the level that serves delta on that ladder."""
        return 2.0 ** -self.prices(delta).levels[-1]


def _no_gradient(k, y):
    raise NotImplementedError("a plan's ladder has prices only; run the plan on a Hierarchy of your own")
