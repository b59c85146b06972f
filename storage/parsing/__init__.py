"""Parsers of documents, each run in a limited process that handles one document at a time."""
