"""The choice of the sparse weight, against a search that looks at one phrase after another."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.tiny import settings

from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.dense.calibration import ModelCalibration
from denspi.dense.encoder import Layout
from denspi.dense.export import ExportSettings, export_phrase_model
from denspi.dense.model_folder import load_phrase_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.runtime_folder import fingerprint
from denspi.errors import SettingsError
from denspi.search.confidence import Confidence
from denspi.settings import from_table
from denspi.sparse import SparseRetriever
from denspi.text.answers import exact_match
from denspi.text.tokens import word_spans
from denspi.training.calibrate import calibrate
from denspi.training.run import Run
from denspi.training.settings import RunSettings
from denspi.types import Document
from denspi.vectors import ParagraphVectors, QuestionVectors

DIM = 3
ASKED = ("where does", "in which town does")


class NoisyEncoder:
    """Vectors without a meaning: whatever is right is right by the sparse scores."""

    layout = Layout(DIM, 0)

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        rows = np.stack([_noise(q, 2 * DIM) for q in questions])
        return QuestionVectors(rows[:, :DIM], rows[:, DIM:], np.ones(len(rows), np.float32))

    def encode_paragraphs(self, paragraphs: Iterable[str]) -> Iterator[ParagraphVectors]:
        for text in paragraphs:
            starts, ends = word_spans(text)
            rows = _noise(text, len(starts) * 2 * DIM).reshape(len(starts), 2 * DIM)
            empty, every = np.zeros((len(starts), 0), np.float32), np.ones(len(starts), bool)
            logits = np.zeros(len(starts), np.float32)
            yield ParagraphVectors(
                starts, ends, rows[:, :DIM], rows[:, DIM:], empty, empty, every, every, logits, logits
            )


def _noise(text: str, size: int) -> np.ndarray:
    return np.random.default_rng(list(text.encode())).normal(size=size).astype(np.float32)


@pytest.fixture(scope="module")
def articles() -> list[SquadArticle]:
    """Every paragraph has words of its own, and its questions repeat them."""

    def paragraph(name: str) -> SquadParagraph:
        answer = SquadAnswer(f"town{name}", len(f"person{name} lives in "))
        questions = (
            SquadQuestion(f"{name}-{n}", f"{ask} person{name} live", (answer,)) for n, ask in enumerate(ASKED)
        )
        return SquadParagraph(f"person{name} lives in town{name} with dog{name}", tuple(questions))

    return [SquadArticle(f"A{n}", tuple(paragraph(f"{n}{m}") for m in "xyz")) for n in range(8)]


def slow_em(articles: list[SquadArticle], weight: float, folder: Path) -> float:
    encoder = NoisyEncoder()
    documents = []
    for article in articles:
        text, spans = join_paragraphs(p.context for p in article.paragraphs)
        documents.append(Document(article.title, article.title.replace("_", " "), text, spans))
    retriever = SparseRetriever.build(documents, folder)
    texts = [p.context for article in articles for p in article.paragraphs]
    vectors = list(encoder.encode_paragraphs(texts))
    right = []
    for question in (q for article in articles for p in article.paragraphs for q in p.questions):
        asked, weighed = encoder.encode_questions([question.text]), retriever.weigh(question.text)
        by_paragraph = retriever.postings.paragraph_scores(weighed)
        by_document = retriever.postings.document_scores(weighed)
        best, answer = -np.inf, ""
        for number, (text, found) in enumerate(zip(texts, vectors, strict=True)):
            document = retriever.postings.documents_of_paragraphs()[number]
            sparse = by_paragraph[number] + by_document[document]
            for i in range(len(found)):
                for j in range(i, min(len(found), i + 20)):
                    dense = asked.starts[0] @ found.starts[i] + asked.ends[0] @ found.ends[j]
                    if dense + weight * sparse > best:
                        best = dense + weight * sparse
                        answer = text[found.word_starts[i] : found.word_ends[j]]
        right.append(exact_match(answer, [a.text for a in question.answers]))
    return 100 * float(np.mean(right))


def test_the_weight_with_the_best_exact_match_is_chosen(articles: list[SquadArticle], tmp_path: Path) -> None:
    weights = (0.0, 3.0, 1000.0)
    result = calibrate(NoisyEncoder(), articles[:3], weights)
    slow = [slow_em(articles[:3], weight, tmp_path / str(weight)) for weight in weights]
    assert [each.em for each in result.weights] == pytest.approx(slow)
    assert result.chosen.sparse_weight == weights[int(np.argmax(slow))]
    # noise cannot find a paragraph, words can
    assert result.weights[2].paragraph > result.weights[0].paragraph + 20


def test_what_is_reported_fits_together(articles: list[SquadArticle]) -> None:
    result = calibrate(NoisyEncoder(), articles, (0.0, 50.0))
    assert result.paragraphs == sum(len(a.paragraphs) for a in articles)
    assert result.questions == sum(len(p.questions) for a in articles for p in a.paragraphs)
    assert 0 <= result.calibration_error <= 1
    assert len(result.risk) == len(result.coverage)
    chosen = next(w for w in result.weights if w.sparse_weight == result.chosen.sparse_weight)
    assert result.risk[-1] == pytest.approx(1 - chosen.em / 100)
    assert all(w.em <= w.f1 + 1e-9 for w in result.weights)


def test_an_empty_paragraph_is_no_paragraph(articles: list[SquadArticle]) -> None:
    """SQuAD's layout allows it; a document does not have it."""
    article = articles[0]
    odd = SquadArticle(article.title, (SquadParagraph(" ", ()), *article.paragraphs))
    empty = SquadArticle("Empty", (SquadParagraph("", ()),))
    assert calibrate(NoisyEncoder(), [odd, empty, *articles[1:]], (0.0, 50.0)).paragraphs == 24


def test_confidences_are_judged_on_articles_that_they_were_not_fitted_to(
    articles: list[SquadArticle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 48 questions about 8 articles, three folds have two articles and two folds have one."""
    fitted_to = []

    def fit(margin: np.ndarray, is_right: np.ndarray) -> Confidence:
        fitted_to.append(len(margin))
        return Confidence(0.0, len(margin) / 10)

    monkeypatch.setattr("denspi.training.calibrate.fit_confidence", fit)
    result = calibrate(NoisyEncoder(), articles, (50.0,))
    assert fitted_to == [48, 36, 36, 36, 42, 42]
    told = sum(each.answers * each.confidence for each in result.reliability)
    assert told == pytest.approx(36 / (1 + np.exp(-3.6)) + 12 / (1 + np.exp(-4.2)))
    assert result.chosen.confidence_intercept == 4.8


def test_the_stage_hands_its_choice_to_the_model_and_its_export(tiny: Path, tmp_path: Path) -> None:
    stages = {
        "phrase": {"loop": {"epochs": 1}},
        "calibrate": {"weights": [0, 50]},
        "export": {"route": "float"},
    }
    table = settings(tiny, **stages)
    Run(from_table(RunSettings, table), tmp_path).run()
    folder = tmp_path / "calibrate"
    told = json.loads((folder / "calibration.json").read_text())
    model = load_phrase_model(folder)
    assert model.calibration == ModelCalibration(**told["chosen"])
    assert [each["sparse_weight"] for each in told["weights"]] == [0, 50]
    scores = json.loads((folder / "scores.json").read_text())["held_out"]
    assert scores["em"] == max(each["em"] for each in told["weights"])
    assert load_encoder(tmp_path / "export").calibration == model.calibration
    # what is indexed does not depend on it
    plain = export_phrase_model(tmp_path / "phrase", tmp_path / "plain", ExportSettings("float"))
    assert plain.calibration is None
    assert plain.fingerprint == fingerprint(tmp_path / "export")


def test_calibration_needs_a_model(tiny: Path) -> None:
    table = {"data": "x.json", "encoder": str(tiny / "encoder"), "calibrate": {}}
    with pytest.raises(SettingsError, match=r"calibrate needs a phrase model: set calibrate\.model"):
        from_table(RunSettings, table)
