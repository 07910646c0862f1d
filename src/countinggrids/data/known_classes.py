"""The classes that files of estimators may name: estimators, and records among their fitted attributes."""

from importlib import import_module
from typing import Any

from sklearn.pipeline import Pipeline

from countinggrids.core.geometry import Geometry
from countinggrids.features.saving import Saveable

PACKAGES = ("countinggrids.models", "countinggrids.meta", "countinggrids.features")
"""Where the classes that files may name are looked for, besides scikit-learn's Pipeline."""
ABSTRACT = ("GridModel",)
RECORDS = {
    "Chain": "countinggrids.meta.chain",
    "Walk": "countinggrids.meta.walk",
    "NoveltyModel": "countinggrids.meta.reference",
    "Choice": "countinggrids.meta.recognizer",
    "Stream": "countinggrids.training.stepwise",
    "Fitted": "countinggrids.training.stepwise",
}
"""Named tuples that fitted attributes may be, with their modules; geometries are records too."""


def known_class(name: Any) -> Any:
    """Return the class that files may call by a name, or None."""
    if name == Pipeline.__name__:
        return Pipeline
    homes = [package for package in map(import_module, PACKAGES) if name in package.__all__]
    cls = getattr(homes[0], name) if homes else None
    return cls if isinstance(cls, type) and issubclass(cls, Saveable) and name not in ABSTRACT else None


def known_record(name: Any) -> Any:
    """Return the named tuple or the geometry that files may call by a name, or None."""
    if name in RECORDS:
        return getattr(import_module(RECORDS[name]), name)
    import_module(PACKAGES[0])  # with the geometries of all models
    geometries: list[type[Geometry]] = [Geometry, *Geometry.__subclasses__()]
    return next((each for each in geometries if each.__name__ == name), None)
