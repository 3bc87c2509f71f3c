"""What the installed libraries do, found by running their own classes on inputs small enough to work out by hand.

An experiment answers in facts: a verb phrase and what it leads to, such as `reads`: `the physical first row`. It never
looks at a version or a source.
"""

from collections.abc import Callable, Mapping

from harness.candidate.behaviour import bert, cross, late, pooling, sparse
from harness.candidate.behaviour.policy import Facts

EXPERIMENTS: Mapping[str, Callable[[], Facts]] = {
    "BertPooler": bert.bert_pooler,
    "BertForSequenceClassification": bert.sequence_head,
    "BertForTokenClassification": bert.token_head,
    "BertForQuestionAnswering": bert.answer_head,
    "Pooling cls": pooling.cls,
    "Pooling max": pooling.maximum,
    "Pooling mean": pooling.mean,
    "Pooling mean_sqrt_len_tokens": pooling.mean_sqrt,
    "Pooling weightedmean": pooling.weighted_mean,
    "Pooling lasttoken": pooling.last_token,
    "Pooling prompt": pooling.prompt,
    "Normalize": pooling.normalize,
    "Dense": pooling.dense,
    "LayerNorm": pooling.layer_norm,
    "CrossEncoder.predict": cross.predict,
    "MultiVectorMask": late.mask,
    "maxsim": late.maxsim,
    "SpladePooling": sparse.pooling,
}


def observe(symbol: str) -> Facts:
    """What the symbol does here. Where it can no longer be asked, no facts but the reason."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return EXPERIMENTS[symbol]()
    except (AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return {"cannot be asked:": f"{type(error).__name__}: {error}".splitlines()[0]}


__all__ = ["EXPERIMENTS", "observe"]
