"""Servers that say one thing and do another, and the verdict that each must get."""
