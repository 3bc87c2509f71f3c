"""A release's documents on disk, part by part, as its search goes through them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoded, Several
from harness.candidate.window import InWindows
from harness.errors import Stopped


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of the documents `start`, `start` + 1, …, memory-mapped.

    Shapes: values [sum of rows, d] float32 with offsets [c + 1] int64, one row a document for single vectors, or one
    for each window where the best counts; indices [sum of rows] int32 where vectors are sparse, else None. `several`,
    as of Encoded.
    """

    start: int
    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    indices: NDArray[np.int32] | None
    several: Several | None = None


@dataclass(slots=True)
class Index:
    """All parts so far; by document, tokens kept and lost and the characters that no window shows; `failed`: why a
    document has nothing, by its row; `in_windows`: of each part, the documents that have several.
    """

    folder: Path
    parts: list[Part] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    uncovered: list[int] = field(default_factory=list)
    in_windows: list[InWindows] = field(default_factory=list)

    def add(self, encoded: Encoded) -> None:
        """Puts what was made of the next documents at the end. Raises Stopped where the disk is full."""
        start = len(self.kept)
        self.folder.mkdir(exist_ok=True)
        arrays = [
            self._on_disk(f"{start}.{name}.npy", each)
            for name, each in (("values", encoded.values), ("indices", encoded.indices))
            if each is not None
        ]
        indices = arrays[1] if len(arrays) > 1 else None
        self.parts.append(Part(start, arrays[0], encoded.offsets, indices, encoded.several))
        self.failed |= {start + row: reason for row, reason in encoded.failed.items()}
        self.kept += encoded.tokens_kept.tolist()
        self.lost += encoded.tokens_lost.tolist()
        self.uncovered += encoded.uncovered.tolist()
        if encoded.in_windows is not None:
            self.in_windows.append(encoded.in_windows.among(start + np.arange(len(encoded.tokens_kept))))

    def _on_disk(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        file = self.folder / name
        try:
            np.save(file, values)
        except OSError as refusal:
            raise Stopped(
                str(file), found=refusal.strerror or str(refusal), expected=f"room for {values.nbytes} bytes",
                mend="Free some space, or point TMPDIR at a larger disk, and give the same command again.",
            ) from refusal  # fmt: skip
        # An empty file cannot be mapped.
        mapped: NDArray[Any] = np.load(file, mmap_mode="r" if values.size else None)
        return mapped


def cut_rows(index: Index) -> Sequence[int]:
    """Documents of which the model saw only a part, by row."""
    return [row for row, lost in enumerate(index.lost) if lost]
