"""The browser on real databases."""
