import os

import matplotlib
import pytest
from hypothesis import HealthCheck, settings

matplotlib.use("agg")
settings.register_profile("everywhere", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True,
                          suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("everywhere")


@pytest.fixture(autouse=True)
def global_precision_is_restored():
    """No test, and nothing it calls, may leave mpmath at another precision."""
    import mpmath

    before = mpmath.mp.dps
    yield
    after, mpmath.mp.dps = mpmath.mp.dps, before
    assert after == before, "mpmath's global precision was left changed"
