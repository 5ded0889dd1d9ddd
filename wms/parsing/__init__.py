"""Parsing of documents from outside in processes of their own, which have limits of processor time and memory and can be killed."""
