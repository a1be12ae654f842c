"""A stand-in for the program vLLM: started as the real one, it serves `fake_vllm`."""

import os

__version__ = os.environ.get("FAKE_VLLM_VERSION", "0.32.0")
