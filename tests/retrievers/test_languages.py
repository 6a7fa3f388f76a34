from __future__ import annotations

import pytest

from retrieval_bench import load_dataset
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.lexical.bm25 import BM25
from retrieval_bench_retrievers.text.languages import language_advice, likely_language
from tests.builders.processes import loads

QUESTIONS = {
    "fr": [
        "Quelle rivière traverse la ville de Lyon ?",
        "Pourquoi les feuilles tombent-elles en automne ?",
        "Combien de temps faut-il pour cuire un œuf dur ?",
        "Qui a inventé la machine à vapeur, et dans quel pays ?",
        "Comment les abeilles retrouvent-elles leur ruche ?",
        "Où se trouve le plus grand lac de la Suisse ?",
        "Quels sont les symptômes d'une carence en fer ?",
    ],
    "de": [
        "Welcher Fluss fließt durch die Stadt Dresden?",
        "Warum fallen die Blätter im Herbst von den Bäumen?",
        "Wie lange muss man ein hartes Ei kochen?",
        "Wer hat die Dampfmaschine erfunden und in welchem Land?",
        "Wie finden Bienen zurück zu ihrem Stock?",
        "Wo liegt der größte See der Schweiz?",
        "Was sind die Anzeichen für einen Mangel an Eisen?",
    ],
    "es": [
        "¿Qué río atraviesa la ciudad de Sevilla?",
        "¿Por qué caen las hojas de los árboles en otoño?",
        "¿Cuánto tiempo hay que cocer un huevo duro?",
        "¿Quién inventó la máquina de vapor y en qué país?",
        "¿Cómo encuentran las abejas el camino a su colmena?",
        "¿Dónde está el lago más grande de Suiza?",
        "¿Cuáles son los síntomas de la falta de hierro?",
    ],
    "it": [
        "Quale fiume attraversa la città di Firenze?",
        "Perché le foglie cadono dagli alberi in autunno?",
        "Per quanto tempo bisogna cuocere un uovo sodo?",
        "Chi ha inventato la macchina a vapore e in quale paese?",
        "Come fanno le api a ritrovare il loro alveare?",
        "Dove si trova il lago più grande della Svizzera?",
        "Quali sono i sintomi di una carenza di ferro?",
    ],
    "ru": [
        "Какая река протекает через город Казань?",
        "Почему осенью с деревьев опадают листья?",
        "Сколько времени нужно варить яйцо вкрутую?",
        "Кто изобрёл паровую машину и в какой стране?",
        "Как пчёлы находят дорогу обратно в улей?",
        "Где находится самое большое озеро Швейцарии?",
        "Какие признаки указывают на нехватку железа?",
        "Чем отличается погода в горах от погоды у моря?",
    ],
    "ar": [
        "ما هو النهر الذي يمر عبر مدينة بغداد؟",
        "لماذا تسقط أوراق الأشجار في فصل الخريف؟",
        "كم من الوقت يحتاج سلق البيضة جيدا؟",
        "من اخترع المحرك البخاري وفي أي بلد كان ذلك؟",
        "كيف تجد النحلة طريق العودة إلى خليتها؟",
        "أين تقع أكبر بحيرة في سويسرا؟",
        "ما هي أعراض نقص الحديد في الجسم؟",
        "ما الفرق بين الطقس في الجبال والطقس على الساحل؟",
        "متى يبدأ موسم الأمطار في شرق أفريقيا؟",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("language", QUESTIONS)
def test_a_few_questions_are_enough(language: str) -> None:
    assert likely_language(QUESTIONS[language]) == language


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["", " ", "?"] * 100,
        QUESTIONS["fr"][:2],
        [" ".join(QUESTIONS["fr"])],
        QUESTIONS["fr"] + QUESTIONS["de"],
        [f"ERR-{number:05d} kube-proxy:{number}/tcp" for number in range(40)],
        ["Ada Lovelace", "José Rizal", "Niels Bohr", "Clara Schumann", "Umberto Boccioni"] * 20,
    ],
    ids=["none", "blank", "too few", "one text", "two languages", "codes", "names"],
)
def test_nothing_is_said_in_doubt(texts: list[str]) -> None:
    assert likely_language(texts) is None


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("fr", "French stems and stop words"),
        ("de", "German stems and stop words"),
        ("es", "Spanish stems and stop words"),
        ("it", "Italian stems and stop words"),
        ("ru", "Russian stems and stop words"),
        ("ar", "Arabic stems, not"),
    ],
)
def test_advice_says_what_would_change(language: str, words: str) -> None:
    advice = language_advice("auto", QUESTIONS[language])
    assert words in advice
    assert f"`language: {language}`" in advice
    assert f"--language {language}," in advice


def test_advice_names_a_code_that_yaml_reads_as_text() -> None:
    questions = [
        "Hvilken elv renner gjennom byen Trondheim?",
        "Hvorfor faller bladene av trærne om høsten?",
        "Hvor lenge må man koke et egg før det er hardt?",
        "Hvem fant opp dampmaskinen, og i hvilket land skjedde det?",
        "Hvordan finner biene veien tilbake til kuben sin?",
        "Hvilke tegn tyder på at noen ikke får i seg nok jern?",
        "Når begynner snøen å smelte på fjellet?",
    ]
    assert likely_language(questions) == "no"
    assert "`language: nb`" in language_advice("auto", questions)


@pytest.mark.parametrize(
    "texts",
    [
        ["万里の長城はいつ建てられましたか", "卵をゆでるのに何分かかりますか"] * 10,
        ["为什么秋天树叶会从树上落下来", "蜜蜂怎样找到回蜂巢的路"] * 15,
        ["Яка річка протікає через місто Київ?", "Чому восени з дерев опадає листя?"] * 10,
        ["Dòng sông nào chảy qua thành phố Huế?", "Tại sao lá rụng vào mùa thu?"] * 10,
    ],
    ids=["pairs in any language", "pairs", "no stemmer", "no stemmer, Latin"],
)
def test_no_advice_where_naming_the_language_would_change_nothing(texts: list[str]) -> None:
    assert language_advice("auto", texts) == ""


@pytest.mark.parametrize("name", ["science-mini", "science-ko-mini"])
def test_no_advice_on_the_datasets_that_come_along(name: str) -> None:
    assert language_advice("auto", [query.text for query in load_dataset(name).queries]) == ""


@pytest.mark.parametrize(
    "tokenizer", ["word", "english", "lucene", {"name": "auto", "language": "en"}]
)
def test_no_advice_where_the_parameters_decide(tokenizer: str | dict[str, str]) -> None:
    assert language_advice(tokenizer, QUESTIONS["fr"]) == ""


def test_a_retriever_warns_unless_the_dataset_names_a_language() -> None:
    queries = [Query(f"q{at}", text) for at, text in enumerate(QUESTIONS["fr"])]
    documents = [Document("d", " ".join(QUESTIONS["fr"]))]
    retriever = BM25()
    retriever.index(documents)
    (warning,) = retriever.health(queries)
    assert isinstance(warning, Notice)
    assert (warning.code, warning.startswith("The queries look French")) == (Code.UNFIT, True)
    retriever.use_language("fr")
    retriever.index(documents)
    assert list(retriever.health(queries)) == []


@pytest.mark.slow
def test_the_detector_is_loaded_when_it_is_asked_only() -> None:
    assert not loads("import retrieval_bench_retrievers.lexical.bm25", "py3langid")
