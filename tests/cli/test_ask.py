"""`denspi ask` on a few articles of the sample corpus, indexed with the shipped model."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.test_shell import HEAVY

from denspi import Index, cli
from denspi.cli.answers_shown import print_reply
from denspi.corpus import join_paragraphs, read_corpus
from denspi.index import directory
from denspi.sample import sample_articles_path
from denspi.search.searcher import Reply
from denspi.types import Answer, Document, Evidence, NgramMatch, ScoreParts, Span

IDS = ["danube", "forth-bridge", "great-fire-of-london"]
QUESTION = "Who built Trajan's bridge over the Danube?"
RIGHT = "Apollodorus of Damascus"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("ask") / "index"
    chosen = [
        each
        for each in read_corpus(sample_articles_path())
        if isinstance(each, Document) and each.document_id in IDS
    ]
    text, spans = join_paragraphs(["The \x1b[31mred\x1b[0m button was pressed by Nils Holm in 1977."])
    chosen.append(Document("danger", "Red \x1b]0;title\x07", text, spans, metadata={"colour": "red"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with Index.create(folder) as made:
            made.add(chosen)
            made.commit()
    return str(folder)


def piped(text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    content = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


def test_an_answer_for_people(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", index, QUESTION, "-k", "2"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == f"1. {RIGHT}"
    assert re.fullmatch(r"   \d+% sure · The Danube \(danube\), paragraph \d", lines[1])
    assert f"[{RIGHT}]" in captured.out
    assert "\n2. " in captured.out
    assert "\n3. " not in captured.out
    assert re.search(r"\d ms \(encode [\d.]+ ms, ", captured.out)
    assert "matched:" not in captured.out
    assert "\x1b" not in captured.out
    assert captured.err == ""


def test_an_explanation_adds_up(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", index, QUESTION, "-k", "1", "--explain"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = re.search(r"score (\S+) = start (\S+) \+ end (\S+) \+ coherency (\S+) \+", printed)
    sparse = re.search(r"document (\S+) \+ paragraph (\S+) matched: (.*?)\d+\.\d ms", printed)
    assert found
    assert sparse
    score, *parts = map(float, [*found.groups(), *sparse.groups()[:2]])
    assert sum(parts) == pytest.approx(score, abs=0.04)
    matched = {pair.rsplit(" ", 1)[0]: float(pair.split()[-1]) for pair in sparse[3].strip().split(", ")}
    assert "bridge" in matched
    assert sum(matched.values()) == pytest.approx(sum(parts[3:]), abs=0.1)


def test_json_is_all_that_is_printed(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", index, QUESTION, "-k", "3", "--strategy", "exact", "--json", "--explain"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert captured.err == ""
    assert found["certificate"]["highest_bound"] is None  # everything was read
    assert (found["question"], found["strategy"], len(found["answers"])) == (QUESTION, "exact", 3)
    best = found["answers"][0]
    assert (best["text"], best["document_id"], best["title"]) == (RIGHT, "danube", "The Danube")
    assert best["parts"].keys() == {"start", "end", "coherency", "document", "paragraph"}
    assert sum(best["parts"].values()) == pytest.approx(best["score"])
    document = Index.open(index).snapshot().document("danube")
    assert document is not None
    assert document.text[best["span"]["start_char"] : best["span"]["end_char"]] == RIGHT
    assert best["matches"]
    assert found["certificate"]["proven_phrases"] > 0
    assert found["latency_ms"] == pytest.approx(sum(found["stages_ms"].values()), abs=0.01)


def test_where_and_weight_reach_the_search(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ask", index, "Who pressed it?", "--json", "--sparse-weight", "0", "--where", "colour=red"]
    assert cli.run(arguments) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert {each["document_id"] for each in answers} == {"danger"}
    assert {each["parts"]["paragraph"] for each in answers} == {0.0}


def test_nothing_that_documents_hold_steers_the_terminal(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["ask", index, "Who pressed it?", "-k", "1", "--where", "document_id=danger"]) == 0
    printed = capsys.readouterr().out
    assert "(danger), paragraph 1" in printed
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", printed)


def test_it_abstains_plainly(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", index, QUESTION, "--min-confidence", "1"]) == 0
    assert capsys.readouterr().out.startswith("No answer: nothing found is sure enough.\n")
    assert cli.run(["ask", index, QUESTION, "--where", "title=nothing"]) == 0
    assert capsys.readouterr().out.startswith("No answer: nothing that may be found fits the question.\n")
    assert cli.run(["ask", index, QUESTION, "--min-confidence", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"] == []


def test_questions_from_a_pipe(
    index: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(QUESTION.encode() + b"\n\n  \nWhere did the fire\xff start?", monkeypatch)
    assert cli.run(["ask", index, "--json", "-k", "1"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["question"] for each in found] == [QUESTION, "Where did the fire\ufffd start?"]
    assert found[0]["answers"][0]["text"] == RIGHT


def test_a_bad_line_in_a_pipe_is_named(
    index: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(f"{QUESTION}\n?!\n{QUESTION}\n", monkeypatch)
    assert cli.run(["ask", index, "-k", "1"]) == 2
    captured = capsys.readouterr()
    line = "denspi: standard input, line 2: question '?!': has no word; ask with letters or digits\n"
    assert captured.err == line
    assert captured.out.count(f"1. {RIGHT}") == 1


@pytest.mark.parametrize("layout", ["lines", "jsonl", "squad"])
def test_a_file_of_questions(
    layout: str, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "In which year did the Forth Bridge open?"
    texts = {
        "lines": f"{QUESTION}\n\n{other}\n",
        "jsonl": f"{json.dumps({'question': QUESTION, 'id': 7})}\n{json.dumps({'question': other})}\n",
        "squad": json.dumps(
            {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [
                            {
                                "context": "c",
                                "qas": [
                                    {"id": "a", "question": QUESTION, "answers": []},
                                    {"id": "b", "question": other, "answers": []},
                                ],
                            }
                        ],
                    }
                ]
            }
        ),
    }
    ids = {"lines": ["1", "3"], "jsonl": ["7", "2"], "squad": ["a", "b"]}
    path = tmp_path / "questions"
    path.write_text(texts[layout])
    assert cli.run(["ask", index, "--questions", str(path), "-k", "2"]) == 0
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert captured.err == ""
    assert [(each["id"], each["question"]) for each in found] == list(
        zip(ids[layout], [QUESTION, other], strict=True)
    )
    assert cli.run(["ask", index, QUESTION, "--json", "-k", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"] == found[0]["answers"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "{}: holds no question"),
        (b"who?\n...\n", "{}, question 2: question '...': has no word; ask with letters or digits"),
        (b"\xff\xfe\xff", "{}: not "),
        (b'{"question": "who?"}\n{"q": 1}\n', "{}:2: has no text under 'question'; write an object with "),
        (b'{"question": "who?"}\n{"question"\n', "{}:2: not JSON ("),
        (b'{"question": "who?", "id": [1]}\n', "{}:1: field 'id' is neither a text nor a whole number"),
        (b'{"data": []}', "{}: holds no question"),
        (b'{"data": [{}]}', "{}: not SQuAD's layout: expected an object with 'title' at data[0]"),
        (b"[1]" * 4000, "{}, question 1: the question has 12,000 characters; ask in at most 4,000"),
    ],
)
def test_a_bad_file_is_one_line_before_any_answer(
    content: bytes, line: str, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions"
    path.write_bytes(content)
    assert cli.run(["ask", index, "--questions", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("denspi: " + line.format(path))
    assert (captured.err.count("\n"), captured.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere", "who?"], "nowhere: no such index; build one with: denspi index"),
        (["INDEX", ""], "the question is empty; ask with at least one word"),
        (["INDEX", "x" * 100_000], "the question has 100,000 characters; ask in at most 4,000"),
        (["INDEX", "who?", "-k", "0"], "Invalid value for '-k': "),
        (["INDEX", "who?", "-k", "5000"], "5000 answers: ask for 1 to 1000"),
        (["INDEX", "who?", "--strategy", "best"], "strategy 'best': there is no such one; choose from "),
        (["INDEX", "who?", "--where", "colour"], "condition 'colour': write it as field=value"),
        (["INDEX", "who?", "--min-confidence", "1.5"], "Invalid value for '--min-confidence': "),
        (["INDEX", "who?", "--min-confidence", "nan"], "Invalid value for '--min-confidence': "),
        (["INDEX", "who?", "--sparse-weight", "inf"], "sparse weight inf: not a number from 0 to 1,000,000"),
        (["INDEX", "who?", "--questions", "f"], "a question and --questions: ask one or the other"),
        (["INDEX", "--questions", "nowhere"], "nowhere: no such file or folder"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    arguments: list[str], line: str, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["ask", *(index if each == "INDEX" else each for each in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: {line}")
    assert (captured.err.count("\n"), captured.out) == (1, "")


def test_asking_loads_no_torch_and_no_compiler(index: str) -> None:
    program = (
        "import sys, denspi.cli; "
        f"code = denspi.cli.run(['ask', {index!r}, 'who?', '-k', '1', '--json']); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in finished.stderr.split()}
    assert loaded.isdisjoint({"torch", "transformers", "numba", "scipy", "rich", "onnx", "matplotlib"})


@pytest.mark.parametrize("command", [["ask"], ["evaluate", "open"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    arguments = [*command, "--help"]
    program = f"import sys, denspi.cli; denspi.cli.run({arguments}); print(*sys.modules, file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in finished.stderr.split()}.isdisjoint(HEAVY)


class Terminal:
    """A session of `denspi ask` on a terminal of its own."""

    def __init__(self, index: str) -> None:
        self.pid, self.file = pty.fork()
        if not self.pid:  # the child
            os.environ["TERM"] = "dumb"
            os.execv(sys.executable, [sys.executable, "-m", "denspi", "ask", index, "-k", "1"])
        self.seen = ""

    def until(self, text: str, press: str = "") -> str:
        """What is printed up to `text`; the key is pressed again while nothing happens.

        CPython's prompt misses a Ctrl-C that comes in the instant between its output and its waiting.
        """
        deadline = time.monotonic() + 60
        self.type(press)
        while text not in self.seen:
            if select.select([self.file], [], [], 5)[0]:
                self.seen += os.read(self.file, 4096).decode(errors="replace")
            else:
                self.type(press)
            assert time.monotonic() < deadline, f"{text!r} did not come after {self.seen!r}"
        found, _, self.seen = self.seen.partition(text)
        return found

    def type(self, text: str) -> None:
        os.write(self.file, text.encode("utf-8", "surrogateescape"))

    def exit_code(self) -> int:
        while True:
            try:
                if not os.read(self.file, 4096):
                    break
            except OSError:  # how the end of a terminal reads
                break
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_conversation(index: str) -> None:
    terminal = Terminal(index)
    try:
        assert "4 documents." in terminal.until("? ")
        terminal.type(f"{QUESTION}\n")
        assert RIGHT in terminal.until(" visited")
        terminal.until("? ")
        terminal.type("half a quest")
        terminal.until("quest")
        assert "Traceback" not in terminal.until("? ", press="\x03")  # Ctrl-C drops the line
        terminal.type("...\n")
        assert "denspi: question '...': has no word" in terminal.until("? ")
        terminal.type("\udcff who built the bridge\n")  # a byte that is no text
        terminal.until(" visited")
        terminal.until("? ")
        terminal.type("\x04")  # Ctrl-D
        assert terminal.exit_code() == 0
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise


def test_an_empty_line_ends_it(index: str) -> None:
    terminal = Terminal(index)
    terminal.until("? ")
    terminal.type("\n")
    assert terminal.exit_code() == 0


def test_a_field_that_no_document_has_is_a_slip(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", index, QUESTION, "--where", "color=red"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no document has this field; there are document_id, title, source, colour" in captured.err
    assert captured.err.count("\n") == 1


def test_closed_standard_streams_are_no_crash(index: str) -> None:
    command = f"{sys.executable} -m denspi ask {index}"
    closed = subprocess.run(f"{command} <&-", shell=True, capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)
    assert "standard input is closed" in closed.stderr
    unheard = subprocess.run(
        f"{command} 'Which river?' >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (unheard.returncode, unheard.stderr) == (0, "")


def test_an_answer_over_two_lines_stays_on_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    span = Span(0, 14)
    answer = Answer(
        text="Maria\n2. Donald",
        document_id="a",
        title="A\tB",
        paragraph=0,
        span=span,
        context="Maria\n2. Donald",
        context_span=span,
        score=1.0,
        parts=ScoreParts(1, 0, 0, 0, 0),
        confidence=0.5,
        evidence=tuple(Evidence("Maria", f"d{n}", "D", 0, span, "Maria", span, 1.0) for n in range(10)),
        matches=tuple(NgramMatch(f"w{n}", 1.0, 0.5) for n in range(15)),
    )
    print_reply(Reply([answer], "hybrid", 1, 3, {"encode": 1.0}, None), explain=True)
    shown = capsys.readouterr().out
    assert shown.startswith("1. Maria 2. Donald\n   50% sure · A B (a), paragraph 1\n")
    assert "and at least 7 more" in " ".join(shown.split())
    assert "and 3 more 4.50" in " ".join(shown.split())
