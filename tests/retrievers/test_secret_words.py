"""Which names say that their value is a secret, and where a config holds one in the open."""

from __future__ import annotations

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.secrets import expand
from retrieval_bench_retrievers.functions.secret_words import is_secret, open_in_arguments
from retrieval_bench_retrievers.programs.launch import launch


@pytest.mark.parametrize(
    ("names", "secret"),
    [
        ("API_KEY apiKey x-api-key HF_TOKEN Authorization X-Auth Set-Cookie PGPASSWORD", True),
        ("CLIENT_SECRET clientSecret OAuth APIKey AWS_SECRET_ACCESS_KEY api-key DB_PASSWD", True),
        ("TOKENIZERS_PARALLELISM MAX_TOKENS AUTHOR KEYSPACE MONKEY keyboard TOKEN_FILE", False),
        ("key-column N 언어 Content-Type author --", False),
    ],
)
def test_words_of_a_name_are_whole_ones(names: str, secret: bool) -> None:
    for name in names.split():
        assert is_secret(name) == secret, name


def test_what_comes_from_the_environment_is_no_secret_in_the_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-and more")
    for command in ("prog --api-key '${MY_KEY}' -v", ["prog", "--api-key=${MY_KEY}", "-v"]):
        given = expand(command, "here")
        started = launch(given, None, {"MAX_TOKENS": 5}, "here")
        assert "sk-and more" in " ".join(started.command)
    words = ["prog", "--token", "--key-file", "a.pem", "--max-tokens", "7", "--author", "me"]
    assert open_in_arguments(words, words) is None


@pytest.mark.parametrize(
    "params",
    [
        {"command": ["cat", "--api-key", "${MY_KEY}"]},
        {"command": ["cat"], "env": {"MY_API_KEY": "${MY_KEY}"}},
    ],
)
@pytest.mark.parametrize("target", ["command", "mcp"])
def test_a_config_may_take_secrets_from_the_environment(
    target: str, params: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-and more")
    assert construct(target, expand(params, "here"))
    with pytest.raises(ConfigError, match="in env stands"):
        construct(target, {"command": ["cat"], "env": {"API_KEY": "sk-1"}})
