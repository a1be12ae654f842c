"""Names that stand for a secret, and those that only look like it."""

from __future__ import annotations

import pytest

from agenteval.log import SECRET_NAME


@pytest.mark.parametrize(
    "name",
    [
        "ACCESS_TOKENS",
        "AWS_SECRET_ACCESS_KEY",
        "CUDA_AUTH",
        "DB_PASS",
        "DB_PWD",
        "GITHUB_PAT",
        "HF_TOKEN",
        "HF_TOKENS",
        "NPM_AUTH",
        "OPENAI_API_KEY",
        "PASSPHRASE",
        "SESSION_COOKIE",
        "SSH_PASSPHRASE",
        "TOKENS",
        "api_tokens",
        "auth",
        "hf_token",
    ],
)
def test_a_secrets_name(name: str) -> None:
    assert SECRET_NAME.search(name)


@pytest.mark.parametrize(
    "name",
    [
        "AUTHOR",
        "COMPAT",
        "MAX_NUM_BATCHED_TOKENS",
        "MIN_TOKENS",
        "NUMPY_PATH",
        "OLDPWD",
        "PATH",
        "PATTERN",
        "VLLM_USE_FASTOKENS",
        "PWD",
        "allowed_token_ids",
        "author",
        "compat",
        "inductor_pass",
        "kv_auth_mode",
        "max_num_batched_tokens",
        "max_tokens",
        "min_tokens",
        "num_speculative_tokens",
        "pattern",
        "prompt_tokens",
        "skip_special_tokens",
        "stop_token_ids",
        "tokens",
    ],
)
def test_a_harmless_name(name: str) -> None:
    assert not SECRET_NAME.search(name)
