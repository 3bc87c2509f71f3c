"""How far predictions go along with what holds."""

from harness.metric.form import Floats, Objects, rank_of
from harness.metric.name import MetricName
from harness.output.contribution import CaseRanks, RankKind

CORRELATIONS: dict[str, RankKind] = {"pearson": "pearson", "spearman": "spearman", "kendall": "kendall"}


def correlation(name: MetricName, case_ids: Objects, prediction: Floats, target: Floats, status: Objects) -> CaseRanks:
    """Pearson, Spearman or Kendall's tau-b of predictions and targets [n]: undefined where either is constant."""
    kind = CORRELATIONS[name.base]
    return rank_of(str(name), case_ids, prediction[:, None], target[:, None], kind, status)
