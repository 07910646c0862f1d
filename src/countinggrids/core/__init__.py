"""The mathematics of counting grids: pure functions on arrays."""
