"""Arrays that know what their axes mean."""

from dataclasses import dataclass, field

import numpy as np

from analytic.errors import InputError


@dataclass(frozen=True, repr=False)
class LabelledArray:
    """An array with a name, named dimensions and their coordinates; ``numpy.asarray`` gives the values.

    Examples
    --------
    >>> gap = LabelledArray("attention_gap", np.array([[0., .5], [0., .7]]), ("seed", "step"),
    ...                     {"seed": np.array([4, 5]), "step": np.array([0, 1])})
    >>> gap.sel(seed=5)
    attention_gap (step: 2)
      step 0 .. 1
      values [0.  0.7]
    >>> float(gap.mean("seed").sel(step=1))
    0.6
    """

    name: str
    values: np.ndarray
    dims: tuple
    coords: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.values.ndim != len(self.dims):
            raise InputError(f"{self.name}: {self.values.ndim} axes but dims {self.dims}")
        for dim, labels in self.coords.items():
            if len(labels) != self.values.shape[self.dims.index(dim)]:
                raise InputError(f"{self.name}: {len(labels)} coordinates for dim {dim!r}")

    def sel(self, **labels):
        """The part of the array at the given coordinate of each named dimension."""
        array = self
        for dim, label in labels.items():
            axis = array._axis(dim)
            found = np.flatnonzero(np.asarray(array.coords[dim]) == label)
            if not len(found):
                raise InputError(f"{self.name} has no {dim} {label!r}")
            array = array._without(dim, np.take(array.values, found[0], axis=axis))
        return array

    def mean(self, dim=None, **numpy_options):
        """Mean over one dimension, leaving out NaN (runs that had ended); ``numpy.mean`` takes all values as usual."""
        if dim is None:
            return np.mean(self.values, **numpy_options)
        return self._without(dim, _quiet(np.nanmean, self.values, axis=self._axis(dim)))

    def std(self, dim=None, **numpy_options):
        """Sample standard deviation (ddof = 1) over one dimension, leaving out NaN; ``numpy.std`` as usual."""
        if dim is None:
            return np.std(self.values, **numpy_options)
        return self._without(dim, _quiet(np.nanstd, self.values, axis=self._axis(dim), ddof=1))

    def to_xarray(self):
        """The same as an ``xarray.DataArray`` (needs xarray)."""
        import xarray

        return xarray.DataArray(self.values, dims=self.dims, coords=self.coords, name=self.name)

    def _axis(self, dim):
        if dim not in self.dims:
            raise InputError(f"{self.name} has no dimension {dim!r}, only {', '.join(self.dims)}")
        return self.dims.index(dim)

    def _without(self, dim, values):
        dims = tuple(other for other in self.dims if other != dim)
        coords = {other: self.coords[other] for other in dims if other in self.coords}
        return LabelledArray(self.name, np.asarray(values), dims, coords)

    @property
    def shape(self):
        return self.values.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def __float__(self):
        return float(self.values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]

    def __repr__(self):
        lines = [f"{self.name} ({', '.join(f'{dim}: {n}' for dim, n in zip(self.dims, self.shape, strict=True))})"]
        for dim in self.dims:
            if dim in self.coords and len(self.coords[dim]):
                labels = self.coords[dim]
                lines.append(f"  {dim} {labels[0]}" + (f" .. {labels[-1]}" if len(labels) > 1 else ""))
        lines.append("  values " + np.array2string(self.values, precision=6, threshold=12, edgeitems=3, prefix=" " * 9))
        return "\n".join(lines)

    def _repr_html_(self):
        from .notebook import html
        from .tables import text_table

        rows = []
        for dim, size in zip(self.dims, self.shape, strict=True):
            labels = self.coords.get(dim) if size else None
            rows.append([dim, str(size), *("-" if labels is None else str(labels[end]) for end in (0, -1))])
        values = np.array2string(self.values, precision=6, threshold=12, edgeitems=3)
        return html("\n".join([self.name, text_table(["dimension", "size", "from", "to"], rows), "", values]))


def _quiet(function, values, **options):
    """A NaN-skipping reduction without the warning for slices that are NaN throughout."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(values, **options)
