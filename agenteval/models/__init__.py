"""A model's name -> a local folder with a verified digest.

Knows folders, Hugging Face ids and the catalogue; must not know contracts, servers or runs.
"""

from agenteval.models.cache import cache_folder, free_bytes
from agenteval.models.catalogue import DEFAULT_MODEL, CatalogueEntry, catalogue
from agenteval.models.folder_digest import digest_folder
from agenteval.models.progress import Progress
from agenteval.models.resolve import ListedModel, SeenModel, list_models, look, pull, resolve

__all__ = [
    "DEFAULT_MODEL",
    "CatalogueEntry",
    "ListedModel",
    "Progress",
    "SeenModel",
    "cache_folder",
    "catalogue",
    "digest_folder",
    "free_bytes",
    "list_models",
    "look",
    "pull",
    "resolve",
]
