"""`harness verify`: what a deployment runs before it believes a bundle."""

from pathlib import Path

from harness.bundle.verify import Verified
from harness.bundle.verify import verify as hold


def verify(bundle: str | Path) -> Verified:
    """Every file of a bundle that changed, is missing or is extra. Raises NotFound where there is no bundle."""
    return hold(Path(bundle))
