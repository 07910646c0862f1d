"""Dates out of a column: read in the one way that fits all of it, or counted and shown."""

from datetime import UTC, datetime
from math import isnan

import pytest

from countinggrids.features.dates import DateReader


def read(values, format=None):
    """Read a column; return ISO dates, None for those not read, and the facts."""
    reader = DateReader(format).fit(values)
    seconds = [reader.read(value) for value in values]
    dates = [None if isnan(each) else datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d") for each in seconds]
    return dates, reader.facts()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2015", datetime(2015, 1, 1)),
        ("2015-03", datetime(2015, 3, 1)),
        ("2015/3/4", datetime(2015, 3, 4)),
        ("20200131", datetime(2020, 1, 31)),
        ("2020-03-03T09:00:00Z", datetime(2020, 3, 3, 9)),
        ("2020-03-03 10:00:00 +0100", datetime(2020, 3, 3, 9)),
        ("2020-03-03 09:00:00 UTC", datetime(2020, 3, 3, 9)),
        ("Tue, 03 Mar 2020 10:00:00 +0100", datetime(2020, 3, 3, 9)),
        ("1583226000.5", datetime(2020, 3, 3, 9, 0, 0, 500000)),
        ("1583226000500", datetime(2020, 3, 3, 9, 0, 0, 500000)),
        ("3 Mar 2020", datetime(2020, 3, 3)),
        ("March 3rd, 2020", datetime(2020, 3, 3)),
        ("Tuesday, March 3, 2020 at 4:05 pm", datetime(2020, 3, 3, 16, 5)),
        ("03-Mar-20", datetime(2020, 3, 3)),
        ("1.6.2023", datetime(2023, 6, 1)),
        ("31.12.99", datetime(1999, 12, 31)),
        ("5/5/2020 12:30 am", datetime(2020, 5, 5, 0, 30)),
        (datetime(2020, 3, 3, tzinfo=UTC), datetime(2020, 3, 3)),
        (1583226000, datetime(2020, 3, 3, 9)),
    ],
)
def test_common_formats(text, wanted):
    assert DateReader().fit([text]).read(text) == wanted.replace(tzinfo=UTC).timestamp()


def test_the_column_decides_whether_the_day_or_the_month_comes_first():
    dates, facts = read(["01/06/2023", "13/07/2023"])
    assert dates == ["2023-06-01", "2023-07-13"]
    assert facts["format"] == "common formats, day first"
    assert (facts["first"], facts["last"]) == ("2023-06-01", "2023-07-13")
    dates, facts = read(["01/06/2023", "6/13/2023"])
    assert dates == ["2023-01-06", "2023-06-13"]
    assert facts["format"] == "common formats, month first"


def test_dates_that_do_not_decide_it_leave_it_open():
    dates, facts = read(["01/06/2023", "05/05/2023", "1.6.2023"])
    assert dates == [None, "2023-05-05", "2023-06-01"]
    assert (facts["unread"], facts["ambiguous"], facts["examples"]) == (1, 1, ["01/06/2023"])


def test_a_column_in_both_orders_leaves_only_the_ambiguous_ones_unread():
    dates, facts = read(["13/06/2023", "06/13/2023", "01/02/2023"])
    assert dates == ["2023-06-13", "2023-06-13", None]
    assert facts["ambiguous"] == 1


def test_what_is_no_date_is_counted_and_shown():
    dates, facts = read(["2020-01-02", "not a date", "99/99/2020", "inf", "", None, float("nan"), "not a date"])
    assert dates == ["2020-01-02"] + [None] * 7
    assert (facts["read"], facts["missing"], facts["unread"], facts["ambiguous"]) == (1, 3, 4, 0)
    assert facts["examples"] == ["not a date", "99/99/2020", "inf"]


def test_a_format_that_is_given_is_the_only_one():
    dates, facts = read(["01/06/2023", "2023-06-01"], "%d/%m/%Y")
    assert dates == ["2023-06-01", None]
    assert (facts["format"], facts["unread"]) == ("%d/%m/%Y", 1)
    for format in ("%q", "%d/%m", "soon"):
        with pytest.raises(ValueError, match=f"date_format='{format}'.*'%d/%m/%Y'"):
            DateReader(format)
