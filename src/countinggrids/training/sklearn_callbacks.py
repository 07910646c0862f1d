"""scikit-learn's callback protocol (`set_callbacks`), where the installed version has it."""

from collections.abc import Callable
from typing import Any, TypeVar

from countinggrids.training.callbacks import Iteration

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _torn_down
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Add nothing to an estimator."""

    def _torn_down(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]
Fit = TypeVar("Fit", bound=Callable[..., Any])


def with_callbacks(fit: Fit) -> Fit:
    """Let callbacks be torn down when `fit` ends, also if it fails."""
    managed: Fit = _torn_down(fit)
    return managed


class FitTask:
    """The task of a fit in scikit-learn's protocol, with one subtask for every iteration.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    data : dict
        X, y and metadata, as the hooks receive them.
    attributes : callable
        Returns the fitted attributes for an `Iteration`, from which hooks receive a fitted estimator. There is none
        while candidates are trained, whose grid is smaller.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], attributes: Callable[[Iteration], dict[str, Any]]):
        self.estimator, self.data, self.attributes = estimator, data, attributes
        self.context = None
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def __call__(self, now: Iteration) -> bool:
        """Report one iteration; return whether a callback stops the run of EM."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=f"{now.stage} iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        fitted = (lambda: self.attributes(now)) if now.stage == "learning" else None
        return bool(task.call_on_fit_task_end(estimator=self.estimator, **self.data, reconstruction_attributes=fitted))

    def end(self) -> None:
        """Report the end of the fit."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, **self.data, reconstruction_attributes=lambda: {}
            )
