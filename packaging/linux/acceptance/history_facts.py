"""What the history file of a user holds, as one line of JSON; for the tests, beside a running program.

    history_facts.py FILE

Run with the installed Python: it has the driver that the program uses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sqlcipher3 import dbapi2

FACTS = {
    "questions": "SELECT count(*) FROM messages WHERE role = 'user'",
    "replies": "SELECT count(*) FROM messages WHERE role = 'assistant' AND status = 'complete' AND text <> ''",
    "failed": "SELECT count(*) FROM messages WHERE status = 'failed'",
    "documents": "SELECT count(*) FROM document_versions WHERE status = 'ready'",
    "unembedded": "SELECT (SELECT count(*) FROM chunks) - (SELECT count(*) FROM chunk_vectors)",
    "sources": "SELECT count(*) FROM sources",
    "manual": "SELECT count(*) FROM sources WHERE document_name = 'manual.pdf'",
    "cited": "SELECT count(*) FROM sources WHERE is_cited",
    "reply": "SELECT text FROM messages WHERE role = 'assistant' ORDER BY id DESC LIMIT 1",
    "quote": "SELECT quote FROM sources WHERE is_cited ORDER BY id DESC LIMIT 1",
}

path = Path(sys.argv[1])
facts: dict[str, object] = {}
if path.exists():
    connection = dbapi2.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    for name, query in FACTS.items():
        try:
            row = connection.execute(query).fetchone()
        except dbapi2.OperationalError as error:  # a file that is being made
            row = (str(error),)
        facts[name] = row[0] if row else None
print(json.dumps(facts, ensure_ascii=False))
