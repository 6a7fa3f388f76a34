"""The policy: what it takes, and that nonsense is refused with everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.metrics import parse_metric
from retrieval_bench_regress.policy import Rise, Undecided, find_policy, load_policy
from tests.builders.files import save


def written(folder: Path, text: str) -> Path:
    return save(folder / "policy.yaml", text)


def refused(folder: Path, text: str, k: int = 10) -> str:
    with pytest.raises(ConfigError) as caught:
        load_policy(written(folder, text), k=k)
    return caught.value.render()


def test_the_shipped_policy_is_one() -> None:
    policy = load_policy(packaged_configs() / "policy.yaml", k=10)
    assert policy.latency == {"p50": 0.05, "p95": 0.10, "slowest-fifth": 0.10}
    assert policy.quality == {parse_metric("nDCG@10"): 0.01}
    assert policy.writes == {"visible_p95": 0.25, "zombies": 0.0}
    assert (policy.undecided, policy.rise) == (Undecided.INCONCLUSIVE, Rise.PASS)


def test_a_policy_can_be_named(here: Path) -> None:
    shipped = load_policy(Path("quality"), k=10)
    assert (shipped.latency, list(map(str, shipped.quality))) == ({}, ["nDCG@10"])
    (here / "configs").mkdir()
    own = here / "configs" / "policy-quality.yaml"
    own.write_text("limits: {nDCG@10: -0.02}\n")
    assert load_policy(Path("quality"), k=10).source == str(own)
    (here / "quality").mkdir()
    assert load_policy(Path("quality"), k=10).source == str(own)
    with pytest.raises(ConfigError, match="did you mean quality") as problem:
        load_policy(Path("qualitty"), k=10)
    assert "improvement" in str(problem.value)


def test_the_users_own_policy_comes_first(here: Path) -> None:
    assert find_policy() == packaged_configs() / "policy.yaml"
    (here / "configs").mkdir()
    own = written(here / "configs", "limits: {p50: 7.5 %}\nundecided: pass\n")
    assert find_policy() == own
    policy = load_policy(k=10)
    assert (policy.latency, policy.quality) == ({"p50": 0.075}, {})
    assert policy.undecided is Undecided.PASS
    assert policy.as_dict() == {
        "source": str(own),
        "limits": {"p50": 0.075},
        "undecided": "pass",
        "rise": "pass",
    }
    assert (
        load_policy(written(here, "limits: {p50: 5%}\nrise: undecided\n"), k=10).rise
        is Rise.UNDECIDED
    )


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("{}", "nothing would be judged"),
        ("{p50: 0%}", "p50: '0%' is no largest acceptable slow-down"),
        ("{p50: -5%}", "p50: '-5%' is no largest acceptable slow-down"),
        ("{p50: 0.05}", "p50: 0.05 is no largest acceptable slow-down: write one such as 5%"),
        ("{p50: nan%}", "no largest acceptable slow-down"),
        ("{p50: 1%}", "p50: 1% is too small: two measurements of the same code"),
        ("{p99: 5%}", "p99: no gate of that name: p50, p95, slowest-fifth"),
        ("{visible_p95: 0.25}", "visible_p95: 0.25 is no share: write one such as 25%"),
        ("{zombies: -1%}", "zombies: '-1%' is no share"),
        ("{zombie: 1%}", "unknown limit 'zombie': did you mean zombies"),
        ("{slowest_fifth: 5%}", "did you mean slowest-fifth"),
        ("{nDGC@10: -0.01}", "unknown limit 'nDGC@10': did you mean nDCG"),
        ("{nDCG@ten: -0.01}", "nDCG@ten: NAME, NAME@k or"),
        ("{nDCG@10: 0.01}", "nDCG@10: 0.01 is no largest acceptable drop"),
        ("{nDCG@10: 0}", "is no largest acceptable drop"),
        ("{nDCG@10: -1}", "is no largest acceptable drop"),
        ("{nDCG@10: -1%}", "is no largest acceptable drop: write a number below 0"),
        ("{nDCG@10: true}", "is no largest acceptable drop"),
        ("{nDCG@10: -.nan}", "is no largest acceptable drop"),
        ("{GMAP: -0.01}", "its mean is geometric"),
        ("{num_ret: -0.01}", "NumRet: it counts, or describes, and more of it is not better"),
        ("{Unjudged@5: -0.01}", "more of it is not better"),
        ("{MAP: -0.01, AP: -0.02}", "AP is there twice"),
        ("[p50]", "'limits': Input should be a valid dictionary"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, limits: str, told: str) -> None:
    assert told in refused(tmp_path, f"limits: {limits}\n")


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    told = refused(
        tmp_path, "limits: {p50: 0%, ndcg: 3}\nundecided: maybe\nrise: fail\nlimit: {}\n"
    )
    words = ("'maybe': fail, inconclusive, pass", "'fail': pass, shown, undecided")
    for part in ("p50: '0%'", "nDCG: 3 is", *words, "key 'limit'"):
        assert part in told
    assert "accepted: keys limits, undecided, rise" in told
    assert str(tmp_path / "policy.yaml") in told


def test_a_metric_that_looks_below_k_is_refused(tmp_path: Path) -> None:
    told = refused(tmp_path, "limits: {nDCG@10: -0.01, R@100: -0.01}\n", k=20)
    assert "limits for R@100 with k = 20" in told
    assert "raise --k to 100" in told


def test_a_file_that_is_not_there_or_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_policy(tmp_path / "none.yaml", k=10)
    assert "the file holds NoneType" in refused(tmp_path, "")
