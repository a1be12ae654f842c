"""Agent evaluation whose results can be repeated, with proof."""

__version__ = "0.1.0"
