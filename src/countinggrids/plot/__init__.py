"""Plots: a result in, matplotlib Axes out."""

from countinggrids.plot.results import capacity, confusion, regions, ribbon

__all__ = ["capacity", "confusion", "regions", "ribbon"]
