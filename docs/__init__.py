"""The documents, and `python -m docs.generate`, which writes those that the code itself tells."""
