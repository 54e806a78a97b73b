"""The numba decorator of all kernels."""

import numba


def jit(function=None, **options):
    """Compile on first call, release the GIL, and cache on disk where a cache folder can be written.

    ``error_model="numpy"`` lets divisions vectorise (x / 0 is inf, as in numpy). The cache does not see
    edits in other files: whatever a jitted function calls must live in its own file.
    """
    if function is None:
        return lambda f: jit(f, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder it may write to (a read-only install)
        return numba.njit(**options)(function)
