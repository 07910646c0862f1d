"""Which classes the files of estimators may name."""

import pytest
from sklearn.pipeline import Pipeline

import countinggrids as cg
from countinggrids.core.geometry import Geometry
from countinggrids.data.known_classes import RECORDS, known_class, known_record


def test_estimators_that_can_be_saved_are_known():
    assert known_class("CountingGrid") is cg.CountingGrid
    assert known_class("GridClassifier") is cg.GridClassifier
    assert known_class("Pipeline") is Pipeline


@pytest.mark.parametrize("name", ["GridModel", "compare", "LogisticRegression", "os.system", "LDA", "", None, 3])
def test_other_names_are_not_known(name):
    assert known_class(name) is None
    assert known_record(name) is None


def test_records_are_named_as_their_classes():
    assert all(known_record(name).__name__ == name for name in RECORDS)
    assert known_record("Geometry") is Geometry
    assert all(known_record(each.__name__) is each for each in Geometry.__subclasses__())
