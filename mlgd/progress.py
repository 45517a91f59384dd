"""A line that says how far a run is, what it has paid and how long it will take: tqdm's where it is installed."""

import sys
import time

EVERY = 0.2  # seconds between two looks of the line


class Bar:
    """A bar over `steps` steps that starts at `step` (a resumed run has some behind it)."""

    def __init__(self, steps: int, step: int):
        self.steps, self.first, self.begin, self.due = steps, step, time.monotonic(), 0.0
        try:
            from tqdm import tqdm
        except ImportError:
            self.tqdm = None
        else:
            self.tqdm = tqdm(total=steps, initial=step, unit="step", file=sys.stderr, mininterval=0.0)

    def show(self, step: int, price: float) -> None:
        now = time.monotonic()
        self.due = now + EVERY
        if self.tqdm is not None:
            self.tqdm.set_postfix_str(f"price {price:.3g}", refresh=False)
            self.tqdm.update(step - self.tqdm.n)
            return
        done = step / self.steps
        left = (now - self.begin) * (self.steps - step) / (step - self.first) if step > self.first else float("nan")
        text = f"\r[{'#' * int(30 * done):30s}] {done:4.0%}  price {price:.3g}  {left:.0f} s left "
        print(text, end="", file=sys.stderr, flush=True)

    def close(self, step: int, price: float) -> None:
        self.show(step, price)
        if self.tqdm is not None:
            self.tqdm.refresh()
            self.tqdm.close()
        else:
            print(file=sys.stderr)
