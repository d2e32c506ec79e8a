"""What the paper reports (arXiv 1906.05807), quoted for comparison. Nothing here is ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingRow:
    """A row of Table 1: SQuAD v1.1 dev, words read in a second on a CPU in batch mode."""

    model: str
    em: float
    f1: float
    words_per_second: float | None = None


@dataclass(frozen=True)
class OpenRow:
    """A row of Table 2: SQuAD-Open, all of English Wikipedia; seconds and documents for each question."""

    model: str
    em: float | None
    f1: float | None
    seconds: float | None
    documents: int | None


@dataclass(frozen=True)
class Sample:
    """A question of the qualitative tables, and the answers quoted there: (document, answer) each."""

    question: str
    answer: str | None  # None where the question is none of SQuAD
    drqa: tuple[tuple[str, str], ...]
    denspi: tuple[tuple[str, str], ...]


DRQA, BERT = ReadingRow("DrQA", 69.5, 78.8, 4_800), ReadingRow("BERT-Large", 84.1, 90.9, 51)
LSTM = ReadingRow("LSTM+SA", 49.0, 59.8)
ELMO = ReadingRow("LSTM+SA+ELMo", 52.7, 62.7)
DENSPI = ReadingRow("DenSPI (dense only), BERT-Large", 73.6, 81.7, 28_700_000)
LINEAR = ReadingRow("+ linear layer", 66.9, 76.4)
INDEPENDENT = ReadingRow("+ independent encoders", 65.4, 75.1)
NO_COHERENCY = ReadingRow("- coherency scalar", 71.5, 81.5)

REREADING = (
    OpenRow("DrQA", 29.8, None, 35, 5),
    OpenRow("R3", None, 37.5, None, None),
    OpenRow("Paragraph ranker", 30.2, None, None, 20),
    OpenRow("Multi-step reasoner", 31.9, 39.2, None, None),
    OpenRow("MINIMAL", 34.7, 42.5, None, 10),
    OpenRow("BERTserini", 38.6, 46.1, 115, None),
    OpenRow("Weaver", 42.3, None, None, 25),
)
SFS = OpenRow("DenSPI-SFS", 33.3, 42.5, 0.60, 5)
DFS = OpenRow("DenSPI-DFS", 28.5, 35.9, 0.51, 815)
NO_SPARSE = OpenRow("DenSPI-DFS, sparse scale 0", 11.2, 16.3, 0.40, 815)
HYBRID = OpenRow("DenSPI-Hybrid", 36.2, 44.4, 0.81, 817)

WORDS = 3_000_000_000
"""Of Wikipedia, about; the sizes below are for all of them."""
PHRASE_DIM, LONGEST_PHRASE = 961, 20
SIZES_TB = {"phrases": 240.0, "pointer": 12.0, "filter": 5.0, "quantization": 1.2}
AUXILIARY_TB = (0.3, 0.5)

SAMPLES = (
    Sample(
        "What can hurt a teacher's mental and physical health?",
        "occupational stress",
        (("Mental health", "substance abuse"),),
        (("Teacher", "occupational stress"),),
    ),
    Sample(
        "Who was Kennedy's science adviser that opposed manned spacecraft flights?",
        "Jerome Wiesner",
        (
            ("Apollo program", "Jerome Wiesner"),
            ("Apollo program", "Abe Silverstein"),
            ("Apollo program", "George Low"),
        ),
        (
            ("Apollo program", "Jerome Wiesner"),
            ("Space Race", "Jerome Wiesner"),
            ("John F. Kennedy", "Jerome Wiesner"),
        ),
    ),
    Sample(
        "What to do when you're bored?",
        None,
        (
            ("Bored to Death (song)", "death"),
            ("Waterview Connection", "boring"),
            ("Bored to Death (song)", "sad"),
        ),
        (
            ("Big Brother 2", "drawing"),
            ("Angry Kid", "close his eyes and sleep"),
            ("Pearls Before Swine", "doodle a rat"),
        ),
    ),
    Sample(
        "What was the main radio network in the 1940s in America?",
        "NBC Red Network",
        (),
        (("American Broadcasting Company", "Columbia Broadcasting System"),),
    ),
    Sample(
        "Which city is the fifth-largest city in California?",
        "Fresno",
        (),
        (("Oakland, California", "Oakland"),),
    ),
    Sample(
        "Who became the King of the Canary Islands?",
        "Bethencourt",
        (
            ("Canary Islands", "Winston Churchill"),
            ("Isleño", "Nicolás de Ovando"),
            ("Canary Islands", "Fernando Clavijo"),
        ),
        (
            ("Tenerife", "Diego Garcia de Herrera"),
            ("Bettencourt", "Jean de Béthencourt"),
            ("Bettencourt", "Jean de Béthencourt"),
        ),
    ),
    Sample(
        "When was the outbreak of World War I?",
        "August 1914",
        (
            ("Australian Army during World War II", "1939"),
            ("Australian Army during World War II", "1939"),
            ("Australian Army during World War II", "1950"),
        ),
        (
            ("SMS Kaiser Friedrich III", "July 1914"),
            ("Germany at the Summer Olympics", "1914"),
            ("Carl Hans Lody", "28 July 1914"),
        ),
    ),
    Sample(
        "What comedian is also a university graduate?",
        "Mike Nichols",
        (
            ("Anaheim University", "Carol Burnett"),
            ("Kettering University", "Bob Kagle"),
            ("Kettering University", "Edward Davies"),
        ),
        (
            ("University of Washington", "Joel McHale"),
            ("Michigan State University", "Dick Martin, comedian Jackie Martling"),
            ("West Virginia State University", "Dick Gregory"),
        ),
    ),
    Sample(
        "Who is parodied on programs such as Saturday Night Live and The Simpsons?",
        "Doctor Who fandom",
        (
            ("The Last Voyage of the Starship Enterprise", "William Shatner"),
            ("Saturday Night Live", "Howard Cosell"),
            ("Fox Broadcasting Company", "Joan Rivers"),
        ),
        (
            ("Gilda Radner", "Barbara Walters"),
            ("This American Life", "Ira Glass"),
            ("Anton Chigurh", "Chigurh"),
        ),
    ),
)
