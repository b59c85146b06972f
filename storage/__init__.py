"""One SQLite file: history, documents, vectors and search; parsers of documents. No torch, no Qt."""
