"""What the heads of a BERT read, train by and leave free."""

from collections.abc import Sequence
from typing import Any

from harness.candidate.behaviour.policy import Facts, fixed, named


def _bert_config(labels: int = 2) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4,
        max_position_embeddings=8, num_labels=labels, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip


def bert_pooler() -> Facts:
    import torch
    from transformers.models.bert.modeling_bert import BertPooler

    pooler = fixed(lambda: BertPooler(_bert_config()))
    rows = torch.tensor([[[1.0, -0.5, 0.2, 0.1], [0.3, 0.7, -0.9, 0.4], [-0.6, 0.5, 0.8, -0.2]]])

    def mapped(row: Any) -> Any:
        return torch.tanh(row @ pooler.dense.weight.T + pooler.dense.bias)

    found, linear = pooler(rows), rows[:, 0] @ pooler.dense.weight.T + pooler.dense.bias
    reads = {"the physical first row": rows[:, 0], "the physical last row": rows[:, -1], "all rows": rows.mean(1)}
    return {
        "reads": named(found, {where: mapped(row) for where, row in reads.items()}),
        "maps by": named(found, {"dense, then tanh": mapped(rows[:, 0]), "dense alone": linear}),
    }


def _head_input() -> dict[str, Any]:
    """Two texts of four positions, the second with one of padding."""
    import torch

    return {
        "input_ids": torch.tensor([[2, 5, 6, 3], [2, 7, 3, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
    }


def _dropout(model: Any, whole: Any) -> str:
    """With everything dropped, a head that drops before its last map gives the bias alone; in evaluation all of it."""
    import torch

    model.dropout = torch.nn.Dropout(1.0)
    trained = model.train()(**_head_input()).logits
    evaluated = model.eval()(**_head_input()).logits
    bias = model.classifier.bias.expand_as(whole)
    known = {
        "before the classifier, in training alone": torch.stack([bias, whole]),
        "before the classifier, always": torch.stack([bias, bias]),
        "nowhere": torch.stack([whole, whole]),
    }
    return named(torch.stack([trained, evaluated]), known)


def sequence_head() -> Facts:
    from transformers import BertForSequenceClassification

    model = fixed(lambda: BertForSequenceClassification(_bert_config(3)))
    states, given = model.bert(**_head_input()), _head_input()
    logits = model(**given).logits
    reads = {
        "the pooler's output": model.classifier(states.pooler_output),
        "the first row": model.classifier(states.last_hidden_state[:, 0]),
    }
    return {
        "classifies": named(logits, reads),
        "drops out": _dropout(model, logits),
        "trains one label without problem_type by": _objective([0.3, -1.2], 1),
        "trains whole-number labels without problem_type by": _objective([2, 0], 3),
        "trains real-number labels without problem_type by": _objective([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], 3),
    }


def _objective(labels: Sequence[Any], count: int) -> str:
    import torch
    import torch.nn.functional as F
    from transformers import BertForSequenceClassification

    model = fixed(lambda: BertForSequenceClassification(_bert_config(count)))
    model.config.problem_type = None
    target = torch.tensor(labels)
    found = model(**_head_input(), labels=target)
    known = {}
    if target.dtype == torch.long:
        known["cross-entropy"] = F.cross_entropy(found.logits, target)
    else:
        shaped = target.reshape(found.logits.shape)
        known["squared error"] = F.mse_loss(found.logits, shaped)
        known["binary cross-entropy of each label"] = F.binary_cross_entropy_with_logits(found.logits, shaped)
    return named(found.loss, known)


def token_head() -> Facts:
    import torch
    import torch.nn.functional as F
    from transformers import BertForTokenClassification

    model = fixed(lambda: BertForTokenClassification(_bert_config(3)))
    rows = model.bert(**_head_input()).last_hidden_state
    labels = torch.tensor([[-100, 1, 2, 0], [1, 0, 2, 1]])
    found = model(**_head_input(), labels=labels)
    flat, target = found.logits.reshape(-1, 3), labels.reshape(-1)
    counted = _head_input()["attention_mask"].reshape(-1) == 1
    ignores = {
        "the label -100 alone, so that a masked row counts": F.cross_entropy(flat, target),
        "the label -100 and masked rows": F.cross_entropy(flat[counted], target[counted]),
    }
    return {
        "classifies": named(found.logits, {"every row, masked ones too, by one linear map": model.classifier(rows)}),
        "has a pooler": "no" if getattr(model.bert, "pooler", None) is None else "yes",
        "drops out": _dropout(model, found.logits),
        "ignores in the loss": named(found.loss, ignores),
    }


def answer_head() -> Facts:
    import torch
    import torch.nn.functional as F
    from transformers import BertForQuestionAnswering

    model = fixed(lambda: BertForQuestionAnswering(_bert_config()))
    rows = model.bert(**_head_input()).last_hidden_state
    start, end = (rows @ model.qa_outputs.weight.T + model.qa_outputs.bias).unbind(-1)
    found = model(**_head_input())
    logits = torch.stack([found.start_logits, found.end_logits])

    def loss(first: int, second: int) -> Any:
        positions = torch.tensor([first, second])
        return model(**_head_input(), start_positions=positions, end_positions=positions).loss

    def entropy(at: Sequence[int]) -> Any:
        target, kept = torch.tensor(at), slice(0, len(at))
        return (F.cross_entropy(start[kept], target) + F.cross_entropy(end[kept], target)) / 2

    free, masked = torch.stack([start, end]), _head_input()["attention_mask"] == 0
    return {
        "splits one map into": named(logits, {"start, then end": free, "end, then start": free.flip(0)}),
        "holds a span at inference to": named(
            logits, {"nothing": free, "rows whose mask is 1": free.masked_fill(masked, float("-inf"))}
        ),
        "ignores the target": named(loss(1, 4), {"of the sequence length": entropy([1])}),
        "takes a target beyond the sequence as": named(
            loss(1, 9), {"the sequence length, so ignored": entropy([1]), "the last row": entropy([1, 3])}
        ),
        "takes a target below 0 as": named(loss(1, -2), {"0": entropy([1, 0]), "ignored": entropy([1])}),
    }
