"""Shares of the bags that workers of a cluster keep, and the iterations on them.

The E step runs where the bags lie, what it gives is added up in the tree of one process, and the M step runs on one
worker. The others fetch the grid from there. So the bits are those of one process, and the caller hears of an
iteration no more than its objective. What is run there is in `worker.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, takewhile
from typing import Any

import numpy as np

from countinggrids import em, learn, scheduler, worker
from countinggrids.engine import FAN, HIGHER, Threads

ATTEMPTS = 3
"""How often work is sent out: a grid is lost where all workers that hold it die."""
SENDING, SLOWEST = 60.0, 1e6
"""Seconds, and bytes a second more, in which a grid must have gone out, or it is sent again."""
FETCHERS = 8
"""Workers that fetch a grid from the same other one."""
LONGEST = 20
"""Iterations after which the grid comes here: where a worker dies, those since then may have to be made again."""
AT_ONCE, MOST_AT_ONCE = 2.0, 100
"""Seconds for which a worker that has all shares makes iterations without a word to the caller, and how many."""
ROWS = 5
"""Times that it does so before the grid comes here, if that is later than otherwise."""


@dataclass(eq=False)
class Held:
    """A grid that lies on a worker.

    Parameters
    ----------
    kept : the shares it was learnt from
    base : the last grid that was in this process
    engine : of this process
    steps : what was made of it since
    made : the worker's `Made`; None for the base itself, and for a grid that was passed over
    told : the rest of it but the grid
    objective : the last one, where it is known
    ahead : the iteration after it, if that was begun already
    """

    kept: "Kept"
    base: em.Grid
    engine: Threads
    steps: tuple[learn.Step, ...] = ()
    made: Any = field(default=None, repr=False)
    told: Any = field(default=None, repr=False)
    objective: float | None = None
    ahead: "Held | None" = field(default=None, repr=False)

    @property
    def was_passed_over(self) -> bool:
        """Tell whether no worker has it, because others were made of it in the same go."""
        return self.made is None and bool(self.steps)

    def fetched(self) -> em.Grid:
        """Bring the grid here."""
        return self.kept.fetched(self)


class Kept:
    """Shares of the bags that workers keep from one iteration to the next."""

    def __init__(self, client: Any, futures: list[Any]):
        self.client, self.futures = client, futures
        self.is_direct = scheduler.reaches_workers(client)
        self.seconds = np.inf  # of an iteration on a worker that has all shares
        self.is_watched = False

    def total(self, function: Callable[..., Any], engine: Threads, *common: Any) -> Any:
        """Add up function(share, engine, *common) over the shares, where they lie, and bring the sum here."""

        def work(is_again: bool) -> Any:
            sent, homes = self._sent(common), list(scheduler.homes(self.client, len(self.futures)))
            parts = self._sums(homes, sent, worker.worked, function, engine)
            return self.client.gather(self._added(parts, homes[0]), direct=self.is_direct)

        return self._attempted(work)

    def iterate(
        self, grid: em.Grid | Held, steps: Iterator[learn.Step], engine: Threads
    ) -> tuple[em.Grid | Held, float]:
        """Make an iteration on the workers, and begin with those that are likely to follow.

        One worker that has all shares makes several in one go. Several begin with the next one while this process
        waits for the objective.
        """
        held = grid if isinstance(grid, Held) else Held(self, grid, engine)
        at_once = self._at_once
        likely = list(islice(steps, at_once + 1))

        def work(is_again: bool) -> Held:
            sent, held.ahead = held.ahead, None
            if is_again or sent is None or sent.steps[len(held.steps)] is not likely[0]:
                before = self._again(held) if is_again or held.was_passed_over else held
                sent = self._stepped(before, likely[:at_once])
            if sent.objective is not None:
                return sent
            if at_once == 1 and len(sent.steps) < LONGEST and likely[1:]:
                sent.ahead = self._stepped(sent, likely[1:])
            return self._opened(sent, len(held.steps))

        now = self._attempted(work)
        is_due = not now.was_passed_over and len(now.steps) >= max(LONGEST, ROWS * at_once)
        return (now.fetched() if is_due else now), now.objective

    def fetched(self, held: Held) -> em.Grid:
        """Bring a grid here; who looks at one that was passed over gets every one from there on."""

        def work(is_again: bool) -> em.Grid:
            self.is_watched |= held.was_passed_over
            if is_again or held.was_passed_over:
                held.made, held.ahead = self._again(held).made, None
            grid: em.Grid = self.client.gather(held.made, direct=self.is_direct).grid
            return grid

        return self._attempted(work) if held.steps else held.base

    def _attempted(self, work: Callable[[bool], Any]) -> Any:
        """Do what may be lost with a worker, again where need be; it is told whether it is done again."""
        from distributed import CancelledError

        lost: BaseException | None = None
        for number in range(ATTEMPTS):
            try:
                with scheduler.explained(self.client):
                    return work(number > 0)
            except scheduler.ClusterError:
                raise
            except (CancelledError, OSError) as error:
                lost, self.is_direct = error, scheduler.reaches_workers(self.client)
        raise scheduler.ClusterError(
            f"an iteration was lost {ATTEMPTS} times ({type(lost).__name__}: {lost}); wanted a scheduler and workers "
            "that stay; look into their logs, and go on from a checkpoint"
        ) from lost

    def _again(self, held: Held) -> Held:
        """Make a grid that was lost once more, from the last one that was here."""
        again = Held(self, held.base, held.engine)
        for step in held.steps:
            again = self._stepped(again, [step])
        again.objective = held.objective
        return again

    @property
    def _at_once(self) -> int:
        """Tell how many iterations are sent out together."""
        return 1 if self.is_watched else max(1, min(MOST_AT_ONCE, int(AT_ONCE / self.seconds)))

    def _stepped(self, held: Held, steps: list[learn.Step]) -> Held:
        """Send out iterations: all of these to one worker that has all shares, else the first."""
        given = self._sent(worker.Made(held.base)) if held.made is None else held.made
        homes = list(scheduler.homes(self.client, len(self.futures)))
        if len(homes) <= FAN and all(home == homes[0] for home in homes):  # in one go: every task takes Dask some time
            previous = -np.inf if held.objective is None else held.objective
            what = (steps, previous, held.engine)
            made = self.client.submit(worker.iterated, self.futures, given, *what, pure=False, **homes[0])
        else:
            steps = steps[:1]
            first, *others = self._sums(homes, given, worker.gathered, steps[0], held.engine)
            # What is done goes to the worker of the M step while others still work; Dask would wait for all of it.
            near = [self.client.submit(_same, part, pure=False, priority=1, **homes[0]) for part in others]
            parts = [first, *near]
            made = self.client.submit(worker.concluded, parts, given, steps[0], held.engine, pure=False, **homes[0])
        told = self.client.submit(worker.told, made, pure=False, priority=2)  # before work on the next iteration
        return Held(self, held.base, held.engine, (*held.steps, *steps), made, told)

    def _opened(self, sent: Held, n_before: int) -> Held:
        """Wait for iterations that were sent out together; give the first, from which the others follow."""
        objectives, self.seconds = sent.told.result()
        row = [
            replace(sent, steps=sent.steps[: n_before + n], made=None, told=None, objective=objective, ahead=None)
            for n, objective in enumerate(objectives, 1)
        ]
        row[-1].made, row[-1].ahead = sent.made, sent.ahead
        for one, following in pairwise(row):
            one.ahead = following
        return row[0]

    def _sent(self, common: Any) -> Any:
        """Send something as large as a grid to one worker.

        Where a worker dies while it is sent to, Dask may wait for its answer for ever. So it goes to one, and workers
        fetch it from each other: Dask's own broadcast tries a dead worker again and again.
        """
        from dask.sizeof import sizeof

        patience = SENDING + sizeof(common) / SLOWEST
        how = {"hash": False, "direct": self.is_direct, "timeout": scheduler.PATIENCE}
        [sent] = self.client.sync(self.client._scatter, [common], **how, callback_timeout=patience)
        return sent

    def _sums(self, homes: list[dict[str, Any]], given: Any, function: Callable[..., Any], *common: Any) -> list[Any]:
        """Work on all shares with what is given, where they lie, and add up until few sums are left."""
        copies = _copies(self.client, given, homes)

        def work(start: int, stop: int) -> Any:
            home, shares = homes[start], self.futures[start:stop]
            return self.client.submit(function, shares, copies[_name(home)], *common, pure=False, **home)

        groups = []
        for first in range(0, len(homes), FAN):
            group = homes[first : first + FAN]
            # The first shares are added up where they lie; the sum of later ones alone would be in another order.
            start = first + len(list(takewhile(group[0].__eq__, group)))
            groups.append([work(first, start), *(work(i, i + 1) for i in range(start, first + len(group)))])
        span = FAN
        while len(groups) > 1:
            sums = [self._added(group, homes[number * span]) for number, group in enumerate(groups)]
            groups, span = [sums[i : i + HIGHER] for i in range(0, len(sums), HIGHER)], span * HIGHER
        return groups[0]

    def _added(self, parts: list[Any], home: dict[str, Any]) -> Any:
        # Before work on other shares, or what all of them give would be held.
        return parts[0] if len(parts) == 1 else self.client.submit(worker.added, parts, pure=False, priority=1, **home)


def _copies(client: Any, sent: Any, homes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say which copy of a grid the worker of each home takes, so that no worker sends it to too many others."""
    workers = list(dict.fromkeys(map(_name, homes)))
    copies = [sent]
    for number in range(1, -(-len(workers) // FETCHERS)):
        home = {"workers": [workers[number]], "allow_other_workers": True}
        copies.append(client.submit(_same, copies[number // FETCHERS], pure=False, **home))
    return {worker: copies[number // FETCHERS] for number, worker in enumerate(workers)}


def _name(home: dict[str, Any]) -> str:
    return str(home.get("workers", [""])[0])


def _same(what: Any) -> Any:
    return what
