"""What the server inherits, and what of that is recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.launch import influential_environment, inherited_environment

NAMES = st.sampled_from(["OMP_NUM_THREADS", "HF_TOKEN", "VLLM_PORT", "PATH", "TZ", "MY_PASSWD", "CUDA_PATH"])
VALUES = st.sampled_from(["2", "hush-hush-hush", "http://u:hush@host", "see hush-hush-hush there"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("OMP_NUM_THREADS", "4", id="threads"),
        pytest.param("ATEN_CPU_CAPABILITY", "avx2", id="torch's CPU kernels"),
        pytest.param("FBGEMM_ENABLE_INSTRUCTIONS", "AVX2", id="kernels for quantized weights"),
        pytest.param("DISABLE_ADDMM_CUDA_LT", "1", id="a variable that stands alone"),
        pytest.param("CUDA_VISIBLE_DEVICES", "0,1", id="devices"),
        pytest.param("CUBLAS_WORKSPACE_CONFIG", ":4096:8", id="workspace"),
        pytest.param("NVIDIA_TF32_OVERRIDE", "0", id="precision"),
        pytest.param("TORCHINDUCTOR_MAX_AUTOTUNE", "1", id="compiler"),
        pytest.param("LD_LIBRARY_PATH", "/home/me/lib", id="libraries in the home folder"),
        pytest.param("PYTHONPATH", "/opt/site", id="modules"),
        pytest.param("HF_HUB_CACHE", "/cache", id="hub"),
        pytest.param("TZ", "Asia/Tokyo", id="time zone"),
    ],
)
def test_what_can_change_numbers_or_libraries_is_recorded(name: str, value: str) -> None:
    assert influential_environment({name: value, "HOME": "/home/me"}) == {name: value}


@pytest.mark.parametrize("name", ["HOME", "PATH", "LANG", "HARMLESS", "XOMP_NUM_THREADS"])
def test_what_changes_no_number_is_passed_on_and_not_recorded(name: str) -> None:
    assert (inherited_environment({name: "x"}), influential_environment({name: "x"})) == ({name: "x"}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("HF_TOKEN", "abc", id="a token"),
        pytest.param("OPENAI_API_KEY", "abc", id="a key"),
        pytest.param("AGENTEVAL_API_KEY", "abc", id="an outside server's key"),
        pytest.param("NVIDIA_NGC_PASSWORD", "abc", id="a password in a recorded family"),
        pytest.param("GITHUB_PAT", "abc", id="a personal access token"),
        pytest.param("PASSPHRASE", "abc", id="a passphrase"),
        pytest.param("HF_TOKENS", "abc", id="several tokens"),
        pytest.param("CUDA_AUTH", "abc", id="what proves who one is"),
        pytest.param("VLLM_USE_V1", "1", id="an engine's variable"),
        pytest.param("HTTPS_PROXY", "http://user:abc@proxy:3128", id="a proxy with a password"),
        pytest.param("HTTPS_PROXY", "http://user:a/bc@proxy:3128", id="a password with a slash"),
        pytest.param("HF_ENDPOINT", "https://abc@hub.example", id="an address with a token"),
        pytest.param("OMP_NOTES", "see https://user:abc@host/path", id="an address among words"),
    ],
)
def test_what_is_secret_or_the_contracts_is_not_passed_on(name: str, value: str) -> None:
    assert inherited_environment({name: value, "HARMLESS": "x"}) == {"HARMLESS": "x"}


def test_a_value_that_repeats_a_secret_is_not_passed_on() -> None:
    environ = {"HF_TOKEN": "hf_abcdefgh", "HF_ENDPOINT": "https://hub.example/?key=hf_abcdefgh"}
    assert inherited_environment(environ) == {}


def test_a_short_secret_hides_no_harmless_value() -> None:
    assert inherited_environment({"DB_PASSWORD": "1", "OMP_NUM_THREADS": "16"}) == {"OMP_NUM_THREADS": "16"}


def test_an_address_without_a_password_is_passed_on() -> None:
    environ = {"HF_ENDPOINT": "https://hub.example:8443/a", "OMP_NOTES": "me@example.org"}
    assert inherited_environment(environ) == environ


@given(st.dictionaries(NAMES, VALUES))
def test_what_is_recorded_is_what_is_passed_on(environ: dict[str, str]) -> None:
    assert influential_environment(environ).items() <= inherited_environment(environ).items()
