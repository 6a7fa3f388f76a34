from __future__ import annotations

import copy
import os
import pickle
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, PluginError
from retrieval_bench.metrics import (
    JudgedRun,
    Judgements,
    default_metrics,
    judge_lists,
    parse_metric,
    parse_metrics,
)
from retrieval_bench.metrics.definitions import DEFINITIONS, Definition
from retrieval_bench.metrics.names import ALIASES as SHORT
from retrieval_bench.metrics.names import named

NAMES = [
    *("nDCG@10", "nDCG", "AP", "AP@3", "RR@10", "RR", "P@5", "R@100", "R", "Success@5", "Success"),
    *("F1@5", "Rprec", "Bpref", "RBP(p=0.8)", "RBP(p=0.95)@10", "ERR@10", "ERR", "Judged@10"),
    *("GMAP", "set_P", "set_R", "set_F", "AP(rel=2)@3", "nDCG(gain=exp)@10", "AP(norm=hits)@3"),
    *("nDCG(gain=exp, ideal=returned)@3", "AP(norm=hits, rel=2)", "RBP(p=0.8, rel=2)@3"),
    *("IPrec@0.1", "IPrec(rel=2, rounding=up)@1", "IPrec@0", "IAP", "IAP(recalls=[0.2,0.5])"),
    *("infAP", "YAAP", "GMBpref", "binG", "G", "G(gains={0:-1,2:3.5})", "nDCG_rel", "set_AP"),
    *("Rndcg(gains={1:2}, rel=2)", "Utility(docs=9, weights=[1,-0.5,0,2])", "Unjudged@5"),
    *("RBP_resid(p=0.8)", "NumQ", "NumRet", "NumRel(rel=2)", "NumRelRet", "NumNonrelRet"),
    *("AP(depth=1000)", "P(judged_only=True, rel=2)@5", "nDCG(gains={1:3.5,2:9})@10"),
    *("P(relative=True)@5", "set_P(relative=True)", "set_F(beta=2.5)", "Rprec(mult=0.2)"),
    *("ERR(highest=3)@20", "GMAP(rel=2)", "Bpref(rel=3)", "set_F(rel=2)", "P(rel=2)@1000"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_back_exactly(name: str) -> None:
    metric = parse_metric(name)
    assert str(metric) == name
    assert parse_metric(str(metric)) == metric


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_metric_is_read_in_any_case(name: str) -> None:
    cut = {"required": "@5", "recall": "@0.5"}.get(DEFINITIONS[name].cut, "")
    rest = ("(p=0.8)" if "p" in DEFINITIONS[name].params else "") + cut
    assert {str(parse_metric(one + rest)) for one in (name, name.lower(), name.upper())} == {
        name + rest
    }


def test_other_names_are_those_of_metrics() -> None:
    assert {name.partition("(")[0] for name in SHORT.values()} == set(DEFINITIONS)


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(DEFINITIONS)),
    st.one_of(st.none(), st.integers(1, 10_000)),
    st.integers(1, 9),
    st.floats(0.001, 0.999),
    st.booleans(),
)
def test_any_metric_that_parses_prints_what_parses_back(
    name: str, cut: int | None, number: int, p: float, blanks: bool
) -> None:
    definition = DEFINITIONS[name]
    if definition.cut == "refused":
        cut = None
    if definition.cut == "required":
        cut = cut or 10
    at = str(cut) if cut else ""
    if definition.cut == "recall":
        at = str(p)
    given_: dict[str, object] = {}
    for key, allowed in definition.params.items():
        if isinstance(allowed, tuple):
            given_[key] = allowed[number % len(allowed)]
        else:
            values: dict[Any, object] = {
                **{int: number, float: p, bool: bool(number % 2), "number": p},
                **{"numbers": f"[{p},-{number}]", "gains": f"{{0:-{p},{number}:{p}}}"},
            }
            given_[key] = values[allowed]
    equals, comma = (" = ", " , ") if blanks else ("=", ",")
    given_.pop("recall", None)
    params = comma.join(f"{key}{equals}{value}" for key, value in given_.items())
    text = f"{name}({params})" + (f"@{at}" if at else "")
    metric = parse_metric(text)
    assert parse_metric(str(metric)) == metric
    assert str(parse_metric(str(metric))) == str(metric)
    assert hash(parse_metric(str(metric))) == hash(metric)


ALIASES = [
    # trec_eval
    *[("map", "AP"), ("map_cut_3", "AP@3"), ("map_cut.3", "AP@3"), ("map_cut@3", "AP@3")],
    *[("ndcg", "nDCG"), ("ndcg_cut_10", "nDCG@10"), ("ndcg_cut.10", "nDCG@10")],
    *[("ndcg_cut@10", "nDCG@10"), ("recall_100", "R@100"), ("recall.100", "R@100")],
    *[("recip_rank", "RR"), ("success_5", "Success@5"), ("success.5", "Success@5")],
    *[("P_5", "P@5"), ("P.5", "P@5"), ("bpref", "Bpref"), ("gm_map", "GMAP")],
    *[("set_recall", "set_R"), ("set_P", "set_P"), ("set_F", "set_F"), ("set_p", "set_P")],
    *[("set_f", "set_F"), ("Rprec", "Rprec"), ("rprec", "Rprec")],
    # ranx
    *[("ndcg@10", "nDCG@10"), ("ndcg_burges@10", "nDCG(gain=exp)@10"), ("mrr@10", "RR@10")],
    *[("map@10", "AP@10"), ("hit_rate@5", "Success@5"), ("precision@5", "P@5")],
    *[("recall@5", "R@5"), ("f1@5", "F1@5"), ("r-precision", "Rprec"), ("rbp.95", "RBP(p=0.95)")],
    *[("rbp.8", "RBP(p=0.8)"), ("ndcg_burges", "nDCG(gain=exp)")],
    # ir_measures
    *[("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp)@10"), ("nDCG(dcg='log2')@10", "nDCG@10")],
    *[('nDCG(dcg="exp-log2")', "nDCG(gain=exp)"), ("SetP", "set_P"), ("SetR", "set_R")],
    *[("SetF", "set_F"), ("Judged@10", "Judged@10"), ("judged@10", "Judged@10")],
    *[("RBP(p=0.80)", "RBP(p=0.8)"), ("RBP(p=.8)", "RBP(p=0.8)"), ("rbp(p=0.5)@3", "RBP(p=0.5)@3")],
    *[("RBP(rel=2,p=0.8)", "RBP(p=0.8, rel=2)"), ("ERR@20", "ERR@20"), ("err@20", "ERR@20")],
    *[("AP(rel=1)@10", "AP@10"), ("AP()", "AP"), ("ERR(highest=4)@3", "ERR@3")],
    *[("nDCG(gain=linear)@10", "nDCG@10"), ("nDCG(ideal=judged)@10", "nDCG@10")],
    *[("AP(norm=relevant)", "AP"), ("MAP(rel=2)@3", "AP(rel=2)@3"), ("rr(rel=2)", "RR(rel=2)")],
    # articles
    *[("MAP@3", "AP@3"), ("NDCG@3", "nDCG@3"), ("MRR", "RR"), ("HitRate@5", "Success@5")],
    *[("Recall@5", "R@5"), ("Precision@5", "P@5"), (" f1@5 ", "F1@5"), ("Success@1", "Success@1")],
    *[("r@5", "R@5"), ("p@5", "P@5"), ("ap", "AP")],
]


@pytest.mark.parametrize(("alias", "name"), ALIASES)
def test_names_of_other_tools_are_read_but_never_printed(alias: str, name: str) -> None:
    assert str(parse_metric(alias)) == name
    assert parse_metric(alias) == parse_metric(name)


def test_a_name_of_trec_eval_may_stand_for_several() -> None:
    assert [str(m) for m in named(["P.5,10", "map", "P_5", "iprec_at_recall.0.2,1"])] == [
        *("P@5", "P@10", "AP", "IPrec@0.2", "IPrec@1")
    ]
    assert len(named(["official"])) == 29
    assert len(named(["set"])) == 10
    assert [str(metric) for metric in named(["official"])][:4] == [
        *("NumQ", "NumRet", "NumRel", "NumRelRet")
    ]


@pytest.mark.parametrize("name", ["NumRet", "Unjudged@5", "RBP_resid", "official"])
def test_what_describes_a_run_is_not_compared(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_metrics(["AP", name])
    assert "more is better" in caught.value.accepted
    assert "score run" in caught.value.fix


def test_parameters_go_to_every_metric_that_knows_them_and_was_not_given_them() -> None:
    metrics = named(["AP", "AP(rel=3)@5", "nDCG", "NumRet", "NumRelRet"])
    also = {"rel": 2, "judged_only": True, "depth": 9}
    assert [str(metric.also(also)) for metric in metrics] == [
        "AP(depth=9, judged_only=True, rel=2)",
        "AP(depth=9, judged_only=True, rel=3)@5",
        "nDCG(depth=9, judged_only=True)",
        "NumRet(depth=9, judged_only=True)",
        "NumRelRet(depth=9, judged_only=True, rel=2)",
    ]
    assert parse_metric("AP").also({"rel": 1, "judged_only": False}) == parse_metric("AP")


def test_a_metric_is_a_value() -> None:
    assert parse_metric("MAP@3") == parse_metric("AP@3")
    assert len({parse_metric("MAP@3"), parse_metric("AP@3")}) == 1
    assert len(parse_metrics(["nDCG@10", "ndcg_cut_10", "R@10"])) == 2
    assert parse_metric("AP(rel=1)@3") == parse_metric("AP@3")
    assert parse_metric("AP(rel=1)@3") != parse_metric("AP(rel=2)@3")
    assert parse_metric("RBP(rel=2, p=0.8)") == parse_metric("RBP(p=.8, rel=2)")
    metric = parse_metric("RBP(p=0.8, rel=2)@3")
    assert pickle.loads(pickle.dumps(metric)) == copy.deepcopy(metric) == metric
    with pytest.raises(AttributeError):
        metric.cut = 5  # type: ignore[misc]


def test_metrics_keep_the_order_in_which_they_are_asked_for() -> None:
    names = ["R@10", "AP", "map", "nDCG@10", "RBP(p=0.8)"]
    assert [str(metric) for metric in parse_metrics(names)] == [
        "R@10",
        "AP",
        "nDCG@10",
        "RBP(p=0.8)",
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nDGC@10", "did you mean nDCG"),
        ("Bprefs", "did you mean Bpref"),
        ("Sucess@5", "did you mean Success"),
        ("IPrec", "IPrec@r with a share r from 0 to 1"),
        ("IPrec@1.1", "a share r from 0 to 1"),
        ("IPrec@5", "a share r from 0 to 1"),
        ("IAP(recalls=0.5)", "recalls = numbers in brackets"),
        ("IAP(recalls=[])", "recalls = numbers in brackets"),
        ("nDCG(gains={})", "gains = gains of grades, such as {1:3.5,2:9}"),
        ("nDCG(gains={1:2,1:3})", "gains = gains of grades"),
        ("nDCG(gains={-1:2})", "gains = gains of grades"),
        ("nDCG(gains={1=2})", "gains = gains of grades"),
        ("P(judged_only=yes)@5", "judged_only = True or False"),
        ("AP(depth=0)", "depth = a whole number from 1"),
        ("set_F(beta=-1)", "beta = a number from 0 on"),
        ("all_trec", "one metric, such as NumQ"),
        ("P.5,10", "one metric, such as P@5: this names 2"),
        ("P", "P@k, such as P@10"),
        ("F1", "F1@k, such as F1@10"),
        ("Judged", "Judged@k"),
        ("precision", "P@k"),
        ("Bpref@10", "Bpref without a cut-off"),
        ("Rprec@5", "Rprec without a cut-off"),
        ("GMAP@5", "GMAP without a cut-off"),
        ("set_P@5", "set_P without a cut-off"),
        ("SetR@5", "set_R without a cut-off"),
        ("set_F@5", "set_F without a cut-off"),
        ("nDCG@0", "a cut-off from 1 to"),
        ("nDCG@-3", "a cut-off from 1 to"),
        ("nDCG@ten", "NAME@k"),
        ("nDCG@3.5", "a cut-off from 1 to"),
        ("nDCG@", "NAME@k"),
        ("nDCG@3@5", "NAME@k"),
        ("nDCG 10", "NAME@k"),
        ("nDCG(gain=exp", "NAME@k"),
        ("nDCG@10(gain=exp)", "NAME@k"),
        ("AP(rel=0)@3", "rel = a whole number from 1 to"),
        ("AP(rel=-1)@3", "rel = a whole number"),
        ("AP(rel=1.5)@3", "rel = a whole number"),
        ("AP(rel=²)@3", "rel = a whole number"),
        ("AP(rel=)@3", "rel = a whole number"),
        ("AP(rel)@3", "parameters rel, norm"),
        ("AP(rel==2)@3", "rel = a whole number"),
        ("AP(gain=exp)", "parameters rel, norm"),
        ("Judged(rel=2)@3", "parameters depth, judged_only"),
        ("AP(rel=2, rel=3)@3", "rel once"),
        ("ndcg_burges(gain=linear)@10", "gain once"),
        ("nDCG(dcg='exp-log2', gain=exp)", "gain once"),
        ("nDCG(gain=cubic)", "gain = linear or exp"),
        ("nDCG(ideal=run)", "ideal = judged or returned"),
        ("AP(norm=k)", "norm = relevant or hits"),
        ("RBP", "a value for p, such as RBP(p=0.8)"),
        ("RBP@10", "a value for p, such as RBP(p=0.8)@10"),
        ("RBP(rel=2)@10", "a value for p, such as RBP(p=0.8)@10"),
        ("RBP(p=1)", "p = a number between 0 and 1"),
        ("RBP(p=0)", "p = a number between 0 and 1"),
        ("RBP(p=-0.5)", "p = a number between 0 and 1"),
        ("RBP(p=nan)", "p = a number between 0 and 1"),
        ("RBP(p=high)", "p = a number between 0 and 1"),
        ("rbp.0", "p = a number between 0 and 1"),
        ("", "NAME"),
        ("@10", "NAME"),
        ("정밀도@5", "NAME"),
    ],
)
def test_a_wrong_name_is_told_what_is_accepted(name: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_metric(name)
    assert says in caught.value.accepted
    assert caught.value.given == f"metric {name!r}" or name == "rbp.0"
    assert caught.value.where == "--metrics"
    assert caught.value.fix


def test_defaults_follow_k() -> None:
    assert [str(m) for m in default_metrics(10)] == [
        "nDCG@10",
        "AP@10",
        "RR@10",
        "R@10",
        "Success@1",
    ]
    assert [str(m) for m in default_metrics(3)][:2] == ["nDCG@3", "AP@3"]
    assert [str(m) for m in default_metrics(1000)][-2:] == ["Success@1", "R@100"]
    assert [str(m) for m in default_metrics(100)].count("R@100") == 1


def _first_grade(run: JudgedRun, *, plus: int = 0) -> NDArray[np.float64]:
    return run.grades(1)[:, 0] / 4.0 + plus


def _depth(run: JudgedRun, cut: int | None, *, unit: str) -> NDArray[np.float64]:
    lengths = run.lengths if cut is None else np.minimum(run.lengths, cut)
    return lengths.astype(np.float64) * (10 if unit == "mm" else 1)


FIRST = Definition(_first_grade, "refused", {"plus": int}, mean="geometric")
DEPTH = Definition(_depth, "optional", {"unit": ("cm", "mm")})
NOT_A_METRIC = "text"


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package has registered metrics, one of them broken."""
    entries = [
        EntryPoint(name, f"{__name__}:{target}", "retrieval_bench.metrics")
        for name, target in [
            ("AcmeFirst", "FIRST"),
            ("AcmeDepth", "DEPTH"),
            ("Broken", "NOT_A_METRIC"),
            ("iap", "FIRST"),
            ("recall", "FIRST"),
        ]
    ]
    kinds = dict.fromkeys(plugins.BUILT_IN, EntryPoints()) | {"metric": EntryPoints(entries)}
    monkeypatch.setattr("retrieval_bench.core.plugins._installed", lambda _: kinds)


@pytest.mark.usefixtures("third_party")
def test_a_metric_of_another_package_keeps_its_name_in_other_letters_than_ours() -> None:
    assert (str(parse_metric("iap")), str(parse_metric("IAP"))) == ("iap", "IAP")
    assert parse_metric("iap(plus=2)").geometric
    assert parse_metric("recall@10") == parse_metric("R@10"), "as other tools call ours"


@pytest.mark.needs("retrieval_bench_rules")
def test_metrics_of_slots_are_read_in_any_case() -> None:
    assert [str(metric) for metric in named(["slotr@5", "CLEAN@3"])] == ["SlotR@5", "Clean@3"]


def test_a_package_that_is_installed_meanwhile_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    os.utime(tmp_path, ns=(0, 0))
    assert "AcmeFirst" not in plugins.names("metric")
    (tmp_path / "acme-1.dist-info").mkdir()
    entry = f"[retrieval_bench.metrics]\nAcmeFirst = {__name__}:FIRST\n"
    (tmp_path / "acme-1.dist-info" / "entry_points.txt").write_text(entry, encoding="utf-8")
    assert "AcmeFirst" in plugins.names("metric")


@pytest.mark.usefixtures("third_party")
def test_a_metric_of_another_package_is_a_metric_like_any_other() -> None:
    run = judge_lists({"q": ["a", "b", "c"]}, ["q"], Judgements({"q": {"a": 2}}))
    names = ["AcmeFirst", "AcmeFirst(plus=2)", "AcmeDepth(unit=cm)", "AcmeDepth(unit=mm)@2"]
    assert [str(metric) for metric in parse_metrics(names)] == names
    assert [metric.compute(run).tolist() for metric in parse_metrics(names)] == [
        [0.5], [2.5], [3.0], [20.0],
    ]  # fmt: skip
    assert parse_metric("AcmeFirst(plus=2)").geometric
    assert not parse_metric("AcmeDepth(unit=cm)").geometric


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("AcmeFirst@3", "AcmeFirst without a cut-off"),
        ("AcmeFirst(minus=1)", "parameters plus"),
        ("AcmeDepth", "a value for unit"),
        ("AcmeDepth(unit=km)", "unit = cm or mm"),
        ("AcmeDepht(unit=cm)", "did you mean AcmeDepth"),
        ("Broken", "retrieval_bench.metrics.Definition"),
    ],
)
def test_a_metric_of_another_package_is_checked_like_any_other(name: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_metric(name)
    assert says in caught.value.accepted


@pytest.mark.needs("retrieval_bench_score")
@pytest.mark.usefixtures("third_party")
def test_a_geometric_mean_of_another_package_is_taken() -> None:
    from retrieval_bench_score.conventions import convention
    from retrieval_bench_score.scoring import Answers, score

    rules = convention("trec")
    qrels = {"q1": {"a": 4}, "q2": {"a": 1}}
    lists = {"q1": ["a"], "q2": ["a"]}
    metrics = rules.parse(["AcmeFirst", "AcmeDepth(unit=cm)"])
    scored = score(Answers(lists=lists), Judgements(qrels), rules, metrics)
    first, depth = scored.evaluation.means
    assert first.mean == pytest.approx(0.5)
    assert depth.mean == 1
    assert first.ci95 == pytest.approx((0.25, 1))
    assert [*scored.as_dict()["metrics"]] == ["AcmeFirst", "AcmeDepth(unit=cm)"]


class TestOfOnesOwn:
    """``module:name`` and ``file.py:name``, as retrievers have it."""

    @pytest.fixture(autouse=True)
    def own(self, here: Path) -> None:
        (here / "own_metrics.py").write_text(
            "import numpy as np\n"
            "from retrieval_bench.metrics import Definition\n"
            "def half(run, cut=None):\n"
            "    return np.full(run.n_queries, 0.5 if cut is None else 0.5 / cut)\n"
            "def of(run, cut, share):\n"
            "    return np.full(run.n_queries, share)\n"
            "part = Definition(of, 'required', {'share': float})\n"
            "broken = Definition(lambda run, cut=None: 1 / 0, 'optional')\n"
            "text = 'no metric'\n",
            encoding="utf-8",
        )

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("own_metrics:half", 0.5),
            ("own_metrics:half@5", 0.1),
            ("own_metrics.py:half@5", 0.1),
            ("./own_metrics.py:half", 0.5),
            ("own_metrics:part(share=0.25)@3", 0.25),
        ],
    )
    def test_it_parses_computes_and_prints_back(self, name: str, value: float) -> None:
        metric = parse_metric(name)
        assert str(metric) == name
        assert parse_metric(str(metric)) == metric
        run = judge_lists({"q": ["a"]}, ["q"], Judgements({"q": {"a": 1}}))
        assert metric.compute(run).tolist() == [value]

    def test_what_is_no_metric_is_told(self) -> None:
        with pytest.raises(ConfigError, match="own_metrics:text"):
            parse_metric("own_metrics:text")
        with pytest.raises(PluginError, match="no 'halb'"):
            parse_metric("own_metrics:halb")

    def test_what_it_raises_is_no_bug_of_ours(self) -> None:
        run = judge_lists({"q": ["a"]}, ["q"], Judgements({"q": {"a": 1}}))
        with pytest.raises(ConfigError, match="failed with ZeroDivisionError"):
            parse_metric("own_metrics:broken").compute(run)


def test_of_a_name_that_is_near_none_the_first_twelve_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        named("xyzzy")
    *shown, more = str(caught.value.accepted).split(", ")
    assert len(shown) == 12
    assert shown == sorted(shown)
    assert {"AP", "ERR"} <= {*shown}
    assert more.endswith(" in all)")
