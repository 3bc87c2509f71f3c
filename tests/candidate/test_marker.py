"""What the installed libraries do, held against the reviewed facts."""

import re
from pathlib import Path

import pytest
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import LayerNorm, Normalize, Pooling
from sentence_transformers.sparse_encoder.modules import SpladePooling
from sentence_transformers.util import similarity
from transformers.models.bert import modeling_bert as bert

from harness.candidate import marker as room
from harness.candidate.behaviour import EXPERIMENTS, observe
from harness.candidate.marker import markers, relied_on, reviewed, source_digest

from .conftest import manifest_with

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "source-markers.md"


def pooling_otherwise(monkeypatch, mode, pool):
    """The library's Pooling with one mode replaced; the others stay as they are."""
    forward = Pooling._forward_padded

    def patched(self, rows, mask, features, prompt_length=None):
        if self.pooling_mode != mode:
            return forward(self, rows, mask, features, prompt_length=prompt_length)
        if prompt_length:
            mask = self._exclude_prompt_from_mask(mask, prompt_length)
        return [pool(rows, mask.unsqueeze(-1).to(rows.dtype))]

    monkeypatch.setattr(Pooling, "_forward_padded", patched)


def physical_weighted_mean(monkeypatch):
    """Weights 1…S by column, as at the pinned revision."""

    def pool(rows, mask):
        weights = mask * torch.arange(1, rows.shape[1] + 1).view(1, -1, 1)
        return (rows * weights).sum(1) / weights.sum(1).clamp(min=1e-9)

    pooling_otherwise(monkeypatch, "weightedmean", pool)


def physical_first_row(monkeypatch):
    pooling_otherwise(monkeypatch, "cls", lambda rows, mask: rows[:, 0])


def own_type_mean(monkeypatch):
    """Sum and count in the rows' own type, as at the pinned revision."""
    pooling_otherwise(
        monkeypatch, "mean", lambda rows, mask: (rows * mask).sum(1) / mask.sum(1).clamp(min=1e-9).to(rows.dtype)
    )


def narrowed_mask(monkeypatch):
    """Later modules see the mask that pooling narrowed, as at the pinned revision."""
    forward = Pooling.forward

    def patched(self, features, **options):
        length = features.get("prompt_length")
        found = forward(self, features, **options)
        if length and not self.include_prompt:
            found["attention_mask"] = self._exclude_prompt_from_mask(found["attention_mask"], length)
        return found

    monkeypatch.setattr(Pooling, "forward", patched)


def squeezed_after(monkeypatch):
    """Softmax over the one label before it is squeezed, as at the pinned revision."""
    inference = CrossEncoder._inference

    def patched(self, inputs, *, apply_softmax, **options):
        found = inference(self, inputs, apply_softmax=apply_softmax, **options)
        return torch.ones_like(found) if apply_softmax and found.ndim == 1 else found

    monkeypatch.setattr(CrossEncoder, "_inference", patched)


PINNED = [
    (physical_weighted_mean, "Pooling weightedmean weights count from the physical first column"),
    (own_type_mean, "Pooling mean sums half-precision rows in their own type"),
    (narrowed_mask, "Pooling prompt shows later modules the narrowed mask"),
    (squeezed_after, "CrossEncoder.predict asked for softmax, gives one label 1 for every pair"),
]


UNREVIEWED = ("MultiVectorMask", "maxsim", "SpladePooling")


def by_symbol():
    return {marker.symbol: marker for marker in markers()}


def texts(found):
    return [finding.text for finding in found]


class TestWhatIsInstalled:
    def test_every_symbol_behaves_as_the_harness_relies_on(self):
        """By running it; and its source is the reviewed one."""
        for found in markers():
            assert found.observed == found.expected, found.symbol
            assert found.behaves and found.known_as is not None
            assert not any(finding.fatal for finding in found.findings)

    @pytest.mark.parametrize(
        ("symbol", "named"),
        [
            ("Pooling weightedmean", "weights count from the first row that isn't padding"),
            ("Pooling mean", "sums half-precision rows in float32, and casts the result back"),
            ("Pooling mean_sqrt_len_tokens", "sums half-precision rows in float32, and casts the result back"),
            ("Pooling prompt", "shows later modules the original mask"),
            ("CrossEncoder.predict", "asked for softmax, gives one label its activation alone"),
        ],
    )
    def test_a_policy_that_moved_since_the_pins_is_a_named_drift(self, symbol, named):
        """With what it was; a drift alone refuses nothing."""
        drift = [finding for finding in by_symbol()[symbol].findings if finding.kind == "policy moved"]
        assert len(drift) == 1 and not drift[0].fatal
        assert drift[0].text.startswith(f"policy moved: {symbol} {named}")
        assert "(at the pinned revision: " in drift[0].text

    def test_nothing_else_moved(self):
        """The BERT heads, cls, max, lasttoken, Normalize, Dense and LayerNorm are as they were."""
        moved = {marker.symbol for marker in markers() if marker.moved}
        assert moved == {
            "Pooling weightedmean", "Pooling mean", "Pooling mean_sqrt_len_tokens", "Pooling prompt",
            "CrossEncoder.predict",
        }  # fmt: skip

    def test_what_was_not_reviewed_at_the_pins_is_said_to_be_that(self):
        """And is no drift, whatever it does now; a symbol that was reviewed says nothing of the kind."""
        for symbol, found in by_symbol().items():
            told = texts(each for each in found.findings if each.kind == "not reviewed at the pins")
            if symbol in UNREVIEWED:
                assert told == [f"{symbol}: behaves as relied on; not reviewed at the pinned revision"]
                assert set(found.pinned.values()) == {None}
            else:
                assert not told and None not in found.pinned.values()

    def test_asking_says_nothing(self, caplog):
        """Documents without rows are meant, so the library's warning of them is nobody's."""
        similarity.logger.warning_once.cache_clear()
        markers()
        assert not caplog.records

    def test_asking_leaves_the_random_state_alone(self):
        """Whoever draws afterwards draws the same."""
        before = torch.get_rng_state()
        markers()
        assert torch.equal(torch.get_rng_state(), before)


class TestNamedByBehaviour:
    @pytest.mark.parametrize(("patch", "named"), PINNED)
    def test_a_pinned_policy_put_back_is_named_though_no_source_changed(self, monkeypatch, patch, named):
        """The digest still is the reviewed one; the policy found is named, and that it is the pinned one."""
        patch(monkeypatch)
        symbol = next(name for name in sorted(EXPERIMENTS, key=len, reverse=True) if named.startswith(name))
        found = by_symbol()[symbol]
        fatal = [finding for finding in found.findings if finding.fatal]
        assert found.known_as == "sentence-transformers 6.2.0" and not found.behaves
        assert len(fatal) == 1 and fatal[0].kind == "behaves otherwise"
        assert fatal[0].text.startswith(f"behaves otherwise: {named}")
        assert ", as at the pinned revision (relied on: " in fatal[0].text

    @pytest.mark.parametrize(
        ("owner", "name", "other", "symbol", "named"),
        [
            (bert.BertPooler, "forward", lambda self, rows: torch.tanh(self.dense(rows[:, -1])),
             "BertPooler", "reads the physical last row"),
            (bert.BertPooler, "forward", lambda self, rows: self.dense(rows[:, 0]),
             "BertPooler", "maps by dense alone"),
            (Normalize, "forward", lambda self, given: {"sentence_embedding": given["sentence_embedding"]
             / given["sentence_embedding"].norm(dim=0)},
             "Normalize", "scales to length 1 by L2, of each dimension over the batch"),
            (Dense, "forward", lambda self, given: {"sentence_embedding": self.linear(given["sentence_embedding"])},
             "Dense", "maps by linear alone"),
            (LayerNorm, "forward", lambda self, given: {"sentence_embedding": torch.nn.functional.layer_norm(
                given["sentence_embedding"], (2,), self.norm.weight, self.norm.bias, 1e-12)},
             "LayerNorm", "adds to the variance 1e-12"),
            (CrossEncoder, "_input_length", staticmethod(lambda pair: 0),
             "CrossEncoder.predict", "batches in the order asked"),
            (CrossEncoder, "eval", lambda self: self, "CrossEncoder.predict", "runs in training mode"),
        ],
    )  # fmt: skip
    def test_another_policy_is_named_by_what_it_does(self, monkeypatch, owner, name, other, symbol, named):
        """Each symbol with one policy replaced by another that is known."""
        monkeypatch.setattr(owner, name, other)
        fatal = [finding.text for finding in by_symbol()[symbol].findings if finding.fatal]
        assert any(text.startswith(f"behaves otherwise: {symbol} {named}") for text in fatal), fatal

    @pytest.mark.parametrize(
        ("mode", "pool", "named"),
        [
            ("cls", lambda rows, mask: rows[:, 0], "reads the physical first row"),
            ("max", lambda rows, mask: (rows * mask).amax(1), "treats padding as zero"),
            ("mean", lambda rows, mask: (rows * mask).mean(1), "divides by the width"),
            ("lasttoken", lambda rows, mask: rows[:, -1], "reads the physical last row"),
            ("lasttoken", lambda rows, mask: rows.mean(1), "reads something that no known policy gives"),
        ],
    )
    def test_so_is_a_pooling_mode(self, monkeypatch, mode, pool, named):
        """And what no known policy gives is said to be that."""
        pooling_otherwise(monkeypatch, mode, pool)
        fatal = [finding.text for finding in by_symbol()[f"Pooling {mode}"].findings if finding.fatal]
        assert f"Pooling {mode} {named}" in "\n".join(fatal)

    @pytest.mark.parametrize(
        ("change", "fact"),
        [
            (lambda whole, task, mask: whole("document"), "counts of a query its own rows alone"),
            (lambda whole, task, mask: whole("query") | mask.bool(), "counts of a document its own rows and those"),
            (lambda whole, task, mask: whole(task) | True, "counts padding always"),
            (lambda whole, task, mask: whole(task or "query"), "takes a text without a task for a query"),
        ],
    )
    def test_other_rows_of_a_text_are_named(self, monkeypatch, change, fact):
        """Rows that fill up, padding, and the side of a text that has none."""
        forward = MultiVectorMask.forward

        def patched(self, features, task=None):
            def whole(side):
                return forward(self, dict(features), task=side)["attention_mask"].bool()

            return {**features, "attention_mask": change(whole, task, features["attention_mask"])}

        monkeypatch.setattr(MultiVectorMask, "forward", patched)
        self.fatal("MultiVectorMask", fact)

    @pytest.mark.parametrize(
        ("tasks", "fact"),
        [(["query", "document"], "queries and documents"), (["query"], "queries alone"), ([], "neither")],
    )
    def test_another_side_of_the_skip_list_is_named(self, monkeypatch, tasks, fact):
        make = MultiVectorMask.__init__
        monkeypatch.setattr(MultiVectorMask, "__init__", lambda self, words: make(self, words, skiplist_tasks=tasks))
        self.fatal("MultiVectorMask", f"skips the listed tokens of {fact}")

    @pytest.mark.parametrize(
        ("score", "fact"),
        [
            (lambda s, q, d: (s.amax(-1) * q).float().mean(-1), "gives the mean of the query rows' greatest"),
            (lambda s, q, d: s.amax(-2).float().sum(-1), "gives the sum of the document rows' greatest"),
            (lambda s, q, d: s.amax(-1).float().sum(-1), "takes of the query's rows all of them"),
            (lambda s, q, d: (s * d).amax(-1).float().sum(-1), "takes a document's padding for a row of similarity 0"),
            (lambda s, q, d: s.amax(-1).float().sum(-1), "takes a document's padding for the row that stands there"),
            (lambda s, q, d: (s.amax(-1) * q).sum(-1), "sums half-precision similarities in their own type"),
            (lambda s, q, d: (s * d).amax(-1).float().sum(-1), "gives a document without counted rows zero"),
        ],
    )
    def test_another_score_of_rows_is_named(self, monkeypatch, score, fact):
        """By what becomes of similarities [queries, documents, query rows, document rows] and of what is masked."""

        def patched(a, b, a_mask, b_mask):
            scores = torch.einsum("ash,bth->abst", a, b)
            query = torch.ones(a.shape[:2]) if a_mask is None else a_mask
            document = torch.ones(b.shape[:2]) if b_mask is None else b_mask
            return score(scores, query.to(scores.dtype)[:, None], document.to(scores.dtype)[None, :, None])

        monkeypatch.setattr(similarity, "_maxsim_score_documents", patched)
        self.fatal("maxsim", fact)

    def test_another_divisor_of_a_mean_is_named(self, monkeypatch):
        monkeypatch.setattr(similarity, "_query_token_counts", lambda a, mask: torch.tensor([a.shape[1]]))
        self.fatal("maxsim", "asked for the mean, divides by how many query rows there are")

    @pytest.mark.parametrize(
        ("pool", "fact"),
        [
            (lambda self, rows, mask: (rows * mask).relu().amax(1), "makes of a logit relu"),
            (lambda self, rows, mask: (rows * mask).abs().log1p().amax(1), "makes of a logit log(1 + its size)"),
            (lambda self, rows, mask: (rows * mask).relu().log1p().amax(1),
             "asked for log1p_relu, makes of a logit log(1 + relu)"),
            (lambda self, rows, mask: (rows * mask).relu().log1p().amax(1),
             "asked for sum, gives the greatest of counted rows"),
            (lambda self, rows, mask: (rows * mask).relu().log1p().sum(1) / mask.sum(1),
             "asked for sum, gives the mean of counted rows"),
            (lambda self, rows, mask: rows.relu().log1p().amax(1), "asked for max, gives the greatest of all rows"),
            (lambda self, rows, mask: rows.relu().log1p().sum(1), "asked for sum, gives the sum of all rows"),
            (lambda self, rows, mask: rows.masked_fill(mask == 0, -torch.inf).amax(1),
             "gives a text without counted rows minus infinity"),
        ],
    )  # fmt: skip
    def test_another_sparse_vector_is_named(self, monkeypatch, pool, fact):
        def patched(self, features):
            mask = features["attention_mask"].unsqueeze(-1)
            return {"sentence_embedding": pool(self, features["token_embeddings"], mask)}

        monkeypatch.setattr(SpladePooling, "forward", patched)
        self.fatal("SpladePooling", fact)

    def test_another_default_of_sparse_vectors_is_named(self, monkeypatch):
        make = SpladePooling.__init__
        monkeypatch.setattr(
            SpladePooling, "__init__", lambda self, mode="sum", applied="relu": make(self, mode, applied)
        )
        self.fatal("SpladePooling", "gives by default the sum of counted rows")

    def fatal(self, symbol, fact):
        """Refused for this fact, though its source is the reviewed one; nothing is claimed of the pins."""
        found = by_symbol()[symbol]
        fatal = [finding.text for finding in found.findings if finding.fatal]
        assert any(text.startswith(f"behaves otherwise: {symbol} {fact}") for text in fatal), fatal
        assert found.known_as == "sentence-transformers 6.2.0" and not any("pinned" in text for text in fatal)

    def test_heads_are_named_too(self, monkeypatch):
        """A token head whose loss leaves masked rows out, and an answer head that turns its channels around."""
        forward = bert.BertForTokenClassification.forward

        def masked(self, input_ids=None, attention_mask=None, labels=None, **options):
            labels = None if labels is None else labels.masked_fill(attention_mask == 0, -100)
            return forward(self, input_ids=input_ids, attention_mask=attention_mask, labels=labels, **options)

        monkeypatch.setattr(bert.BertForTokenClassification, "forward", masked)
        answer = bert.BertForQuestionAnswering.forward

        def turned(self, **given):
            found = answer(self, **given)
            found.start_logits, found.end_logits = found.end_logits, found.start_logits
            return found

        monkeypatch.setattr(bert.BertForQuestionAnswering, "forward", turned)
        found = by_symbol()
        assert found["BertForTokenClassification"].observed["ignores in the loss"] == "the label -100 and masked rows"
        assert found["BertForQuestionAnswering"].observed["splits one map into"] == "end, then start"

    def test_a_symbol_that_can_no_longer_be_asked_is_fatal_and_says_why(self, monkeypatch):
        """A method that takes other arguments answers nothing."""
        monkeypatch.setattr(bert.BertPooler, "forward", lambda self: None)
        found = by_symbol()["BertPooler"]
        assert not found.behaves and [finding.kind for finding in found.findings] == ["behaves otherwise"] * 2
        assert "cannot be asked: TypeError" in found.findings[0].text


class TestSources:
    def test_an_unknown_source_of_the_same_behaviour_is_a_warning(self, monkeypatch):
        """It is told, and refuses nothing."""
        monkeypatch.setattr(room, "source_digest", lambda at: "f" * 64)
        for found in markers():
            changed = [finding for finding in found.findings if finding.kind == "source changed"]
            assert texts(changed) == [f"{found.symbol}: source changed, the behaviour the same"]
            assert found.behaves and found.known_as is None and not changed[0].fatal

    def test_an_unknown_source_of_other_behaviour_is_told_by_both(self, monkeypatch):
        """The behaviour is what refuses."""
        monkeypatch.setattr(room, "source_digest", lambda at: None)
        physical_weighted_mean(monkeypatch)
        found = by_symbol()["Pooling weightedmean"].findings
        assert [(finding.kind, finding.fatal) for finding in found] == [
            ("behaves otherwise", True), ("source changed", False),
        ]  # fmt: skip

    def test_line_ends_make_no_other_source(self, tmp_path, monkeypatch):
        """The same module with CRLF and with LF; another byte makes another digest."""
        monkeypatch.syspath_prepend(tmp_path)
        digests = []
        for name, end in (("marked_lf", b"\n"), ("marked_crlf", b"\r\n"), ("marked_other", b" \n")):
            (tmp_path / f"{name}.py").write_bytes(b"class Pooled:" + end + b"    pass" + end)
            digests.append(source_digest(f"{name}:Pooled"))
        assert digests[0] == digests[1] != digests[2]
        assert source_digest("no_such_module:Pooled") is None

    def test_the_pinned_digests_are_known_beside_the_installed(self):
        """Nine files; transformers had no source to be had at its pin, the norm's is one that never changed, and those
        of late and sparse encoders were not looked up there.
        """
        by_file = {}
        for source in reviewed().sources:
            by_file.setdefault(source.known_as, []).append(source.file)
        assert (len(by_file["f6d3a403"]), len(by_file["sentence-transformers 6.2.0"])) == (4, 8)
        assert by_file["transformers 5.24.0"] == ["transformers/models/bert/modeling_bert.py"]


class TestTheReviewedFile:
    def test_it_speaks_of_every_experiment_and_fact(self):
        """No symbol or fact is on one side alone."""
        said = {symbol.symbol: [fact.fact for fact in symbol.facts] for symbol in reviewed().symbols}
        assert said == {symbol: list(observe(symbol)) for symbol in EXPERIMENTS}

    def test_the_document_maps_each_symbol_to_its_contract(self):
        """Row by row: symbol, fields, fact, at the pins, now."""
        rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
        assert rows == [
            (
                symbol.symbol, ", ".join(f"`{field}`" for field in symbol.serves), fact.fact, fact.reviewed,
                {None: "not reviewed", fact.reviewed: "the same"}.get(fact.pinned, f"**{fact.pinned}**"),
            )
            for symbol in reviewed().symbols
            for fact in symbol.facts
        ]  # fmt: skip

    def test_every_contract_is_a_field_of_the_manifest(self):
        """A renamed field would leave a contract that nobody holds."""
        manifest = manifest_with({}).model_dump(by_alias=True)["meaning"]
        known = manifest["towers"]["both"] | manifest | {"training": room_fields("training")}
        for symbol in reviewed().symbols:
            for path in symbol.serves:
                group, _, field = path.partition(".")
                assert field in known[group], path


def room_fields(name):
    from harness.release.manifest import Training

    return Training.model_fields


NORM = {
    "kind": "layer-norm", "width_in": 32, "width_out": 32, "bias": True, "activation": "identity", "residual": False,
    "weights": None,
}  # fmt: skip


class TestWhatAReleaseReliesOn:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, {"Pooling mean", "Normalize"}),
            ({"readout.modes": ["cls", "max"]}, {"Pooling cls", "Pooling max", "Normalize"}),
            ({"readout.projections": [NORM]}, {"Pooling mean", "LayerNorm", "Normalize"}),
            ({"rows.prompt": False}, {"Pooling mean", "Pooling prompt", "Normalize"}),
            ({"readout.normalisation": {"kind": "none", "epsilon": None, "stage": "none"}}, {"Pooling mean"}),
            ({"readout.family": "span-head", "readout.modes": []}, {"BertForQuestionAnswering", "Normalize"}),
            ({".meaning.interaction.kind": "cross"}, {"Pooling mean", "Normalize", "CrossEncoder.predict"}),
            (
                {"readout.family": "rows", "readout.modes": [], ".meaning.interaction.kind": "late"},
                {"MultiVectorMask", "maxsim", "Normalize"},
            ),
            (
                {
                    "readout.family": "sparse",
                    "readout.modes": ["max"],
                    ".meaning.interaction.kind": "sparse",
                    "readout.normalisation": {"kind": "none", "epsilon": None, "stage": "none"},
                },
                {"SpladePooling"},
            ),
        ],
    )
    def test_only_the_symbols_behind_its_outputs(self, changes, expected):
        """So that a drift elsewhere is none of its."""
        assert relied_on(manifest_with(changes)) == expected
