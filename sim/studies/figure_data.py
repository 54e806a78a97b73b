"""The data of a figure: named columns of equal length, and their CSV file."""

import csv
import io
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FigureData:
    """Rows of a figure as columns: text, or float64 with NaN where a row has no such number.

    A figure is drawn from this alone, and the CSV file holds exactly this: ``FigureData.from_csv(data.csv())`` equals
    ``data`` bit for bit.

    Examples
    --------
    >>> data = FigureData.stack({"source": "population", "d": [10, 20], "step": [7, 13]}, {"source": "law", "d": 10})
    >>> data.where(source="population")["step"].tolist()
    [7.0, 13.0]
    >>> print(data.csv(), end="")
    source,d,step
    population,10,7
    population,20,13
    law,10,
    """

    columns: dict

    @classmethod
    def stack(cls, *parts):
        """Put parts below one another; a part maps column names to arrays of one shape, or to single values."""
        parts = [_equally_long(part) for part in parts]
        names = dict.fromkeys(name for part in parts for name in part)
        columns = {}
        for name in names:
            text = any(part[name].dtype.kind == "U" for part in parts if name in part)
            pieces = [part.get(name, np.full(len(_any(part)), "" if text else np.nan)) for part in parts]
            columns[name] = np.concatenate([piece if text else piece.astype(np.float64) for piece in pieces])
        return cls(columns)

    def __getitem__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(_any(self.columns))

    def where(self, **labels):
        """The rows whose columns have the given values."""
        chosen = np.ones(len(self), dtype=bool)
        for name, value in labels.items():
            chosen &= self.columns[name] == value
        return FigureData({name: column[chosen] for name, column in self.columns.items()})

    def values_of(self, name):
        """The different values of a column, in the order in which they first occur; NaN and "" left out."""
        column = self.columns[name]
        return list(dict.fromkeys(column[column != ""] if column.dtype.kind == "U" else column[~np.isnan(column)]))

    def number(self, name):
        """The one value of a column."""
        return self.columns[name].item()

    def csv(self):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*([_cell(value) for value in column.tolist()] for column in self.columns.values()),
                             strict=True))
        return text.getvalue()

    @classmethod
    def from_csv(cls, text):
        header, *rows = csv.reader(io.StringIO(text))
        return cls({name: _parsed(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)})


def _any(part):
    return next(iter(part.values()))


def _equally_long(part):
    columns = np.broadcast_arrays(*(np.atleast_1d(value) for value in part.values()))
    return {name: column.ravel() for name, column in zip(part, columns, strict=True)}


def _cell(value):
    """Shortest text that gives the same float back; a missing number is an empty cell."""
    if isinstance(value, str):
        return value
    return "" if np.isnan(value) else repr(value).removesuffix(".0")


def _parsed(cells):
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
