"""Who watches a fit: the caller's callback, and a line now and then for those who wait."""

import sys
import time

from countinggrids.learn import Callback, Iteration


def both(*watchers: Callback | None) -> Callback | None:
    """Call every watcher, if there are any; stop when one says so."""
    active = [watcher for watcher in watchers if watcher is not None]
    if not active:
        return None

    def watch(iteration: Iteration) -> bool:
        answers = [watcher(iteration) for watcher in active]
        return any(answers)

    return watch


class Told:
    """Writes a line to stderr every two seconds; from verbose=2 on, at every iteration."""

    def __init__(self, verbose: int):
        self.pause = 2.0 if verbose == 1 else 0.0
        self.last = time.monotonic()

    def __call__(self, now: Iteration) -> None:
        if time.monotonic() - self.last >= self.pause:
            self.last = time.monotonic()
            print(
                f"{now.stage}, restart {now.restart + 1}, iteration {now.number} of at most {now.planned}: "
                f"beta {now.beta:.3g}, objective per token {now.objective:.6f}",
                file=sys.stderr,
            )
