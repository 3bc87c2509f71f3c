"""A live bi-encoder over a suite: encode in chunks, search exactly, scatter back to case IDs.

The candidate is given texts and a side, nothing else: no judgement, label, role or slice.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harness.output.case import CaseOutput, OutputStatus
from harness.run.ranking import WHOLE_GROUP, Cut, cut_ranking
from harness.run.replay import Remark
from harness.run.search import Chunk, search

# Documents encoded and held at once; the vectors of all others lie on disk.
CHUNK = 8192
