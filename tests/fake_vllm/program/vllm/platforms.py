"""Which kind of device there is; the environment variable FAKE_VLLM_DEVICE_TYPE says."""

import os


class Platform:
    """The one fact that programs ask of the platform."""

    device_type: str = os.environ.get("FAKE_VLLM_DEVICE_TYPE", "cpu")
    device_name: str = device_type


current_platform = Platform()
