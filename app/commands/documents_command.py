"""`inglenook documents`: add, list, search, remove, forget and check the documents of the profile, without a window.

The same database as the window's, through the same code of storage. One program has the profile at a time: while the
window is open, a command says so and does nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from inglenook.app.commands.document_password import add_password_option
from inglenook.app.commands.documents_add import run_add
from inglenook.app.commands.documents_embedder import run_embedder
from inglenook.app.commands.documents_profile import chosen_document, open_profile, print_json
from inglenook.app.commands.documents_search import documents_meant, run_search
from inglenook.app.commands.json_keys import SEARCH_KEYS, add_keys
from inglenook.app.commands.scope_options import add_scope_options
from inglenook.app.commands.terminal import one_line
from inglenook.app.errors import UsageError
from inglenook.app.paths import given_path
from inglenook.storage.document_collections import DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.forget_receipt import ForgetReceipt, forget_with_receipt


def add_documents(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its own commands to the parser."""
    parser = commands.add_parser(
        "documents",
        help="add, list, search, remove and forget documents",
        description="The documents that answers are looked up in.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], help_: str) -> argparse.ArgumentParser:
        result = actions.add_parser(
            name, help=help_, description=help_.capitalize() + ".", allow_abbrev=False
        )
        result.add_argument("--json", action="store_true", help="print one JSON object")
        result.set_defaults(run=run)
        return result

    adding = action("add", run_add, "read files, and those inside folders; unchanged ones are passed over")
    adding.add_argument("paths", metavar="PATH", nargs="+", type=given_path)
    add_password_option(adding)
    adding.add_argument("--encoding", metavar="E", help="of text files whose encoding is guessed wrongly")
    adding.add_argument(
        "--words-only", action="store_true", help="make no vectors now; the window makes them later"
    )

    adding.add_argument("--collection", metavar="NAME", help="put them into this collection")

    add_scope_options(action("list", run_list, "list the documents"))

    searching = action("search", run_search, "find passages")
    add_keys(searching, SEARCH_KEYS)
    searching.add_argument("question", metavar="QUESTION")
    searching.add_argument(
        "--limit", metavar="N", type=int, default=10, help="how many passages (default: 10)"
    )
    add_scope_options(searching)
    searching.add_argument("--words-only", action="store_true", help="do not search by meaning")

    for name, run, help_ in (
        ("remove", run_remove, "move documents to the trash, from where the window can take them back"),
        ("forget", run_forget, "delete documents so that no byte of their text stays, with a receipt"),
    ):
        chosen = action(name, run, help_)
        chosen.add_argument(
            "documents", metavar="DOCUMENT", nargs="+", help="a number, path or name of the list"
        )

    collecting = action("collect", run_collect, "put documents into a collection")
    collecting.add_argument("collection_name", metavar="COLLECTION")
    collecting.add_argument(
        "documents", metavar="DOCUMENT", nargs="+", help="a number, path or name of the list"
    )
    collecting.add_argument("--out", action="store_true", help="take them out of it instead")

    choosing = action("embedder", run_embedder, "say or choose the model that finds passages by meaning")
    choosing.add_argument(
        "model", metavar="MODEL", nargs="?", help="a name of 'inglenook models list', or a folder"
    )

    action("check", run_check, "check the database, its indexes and what is not finished")


def run_list(options: argparse.Namespace) -> int:
    """List the documents; returns the exit status."""
    with open_profile() as db:
        meant = documents_meant(db, options)
        entries = [d for d in Documents(db).entries() if meant is None or d.id in set(meant)]
        collections = DocumentCollections(db).entries()
    names = {d.id: [c.name for c in collections if d.id in c.document_ids] for d in entries}
    if options.json:
        print_json(
            {"documents": [{**asdict(document), "collections": names[document.id]} for document in entries]}
        )
        return 0
    for document in entries:
        state = document.status if document.status != "ready" else f"{document.num_chunks:,} passages"
        guessed = " (guessed)" if document.is_encoding_guessed else ""
        parts = [document.kind or "file", state, f"{document.encoding}{guessed}" if document.encoding else ""]
        reason = f": {document.error}" if document.error else ""
        inside = f"  [{', '.join(names[document.id])}]" if names[document.id] else ""
        print(
            one_line(f"{document.id:>5}  {document.name}  ({', '.join(filter(None, parts))}{reason}){inside}")
        )
    if not entries:
        print("There are no documents yet; 'inglenook documents add PATH' adds some.")
    return 0


def run_collect(options: argparse.Namespace) -> int:
    """Put documents into a collection, or take them out of it; returns the exit status."""
    with open_profile() as db:
        documents = Documents(db)
        ids = [chosen_document(documents, each).id for each in options.documents]
        collections = DocumentCollections(db)
        try:
            if options.out:
                collections.take_out(options.collection_name, ids)
            else:
                collections.put(options.collection_name, ids)
        except InvalidValueError as error:
            raise UsageError(str(error)) from error
        entries = collections.entries()
    if options.json:
        print_json({"collections": [asdict(collection) for collection in entries]})
    for collection in () if options.json else entries:
        print(one_line(f"{collection.name}: {len(collection.document_ids)} documents"))
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Move documents to the trash; returns the exit status."""
    with open_profile() as db:
        documents = Documents(db)
        chosen = [chosen_document(documents, each) for each in options.documents]
        with db.atomic():
            for document in chosen:
                documents.trash(document.id)
    if options.json:
        print_json({"removed": [document.id for document in chosen]})
    else:
        print(one_line(f"In the trash: {', '.join(document.name for document in chosen)}."))
    return 0


def run_forget(options: argparse.Namespace) -> int:
    """Forget documents and print the receipt; returns the exit status: 1 where something is left."""
    with open_profile() as db:
        documents = Documents(db)
        receipt = forget_with_receipt(
            db, [chosen_document(documents, each, trashed=True).id for each in options.documents]
        )
    if options.json:
        print_json({**asdict(receipt), "is_clean": receipt.is_clean})
    else:
        _print_receipt(receipt)
    return 0 if receipt.is_clean else 1


def run_check(options: argparse.Namespace) -> int:
    """Check the database; returns the exit status: 1 where something is wrong."""
    with open_profile() as db:
        problems = db.check()
        unfinished = [document.name for document in Documents(db).waiting()]
        row = db.row("SELECT count(*) FROM chunks")
        num_chunks = int(row[0]) if row else 0
    if options.json:
        print_json({"problems": problems, "unfinished": unfinished, "chunks": num_chunks})
    else:
        for problem in problems:
            print(one_line(problem))
        print(
            f"{num_chunks:,} passages; {len(problems)} problems; {len(unfinished)} documents still to be read."
        )
    return 1 if problems else 0


def _print_receipt(receipt: ForgetReceipt) -> None:
    print(one_line(f"Forgotten: {', '.join(receipt.names)}."))
    print(
        f"Deleted {receipt.num_chunks:,} passages with their words in the index, {receipt.num_vectors:,} vectors and "
        f"{receipt.num_quotes:,} quotes under answers."
    )
    if receipt.num_shared:
        print(
            f"{receipt.num_shared} of {receipt.num_shared + receipt.num_samples} samples of its text are still here, in "
            "other documents or in chats: forget those too, if they must go."
        )
    print(f"Searched every byte for {receipt.num_samples} phrases and words of the text:")
    for file in receipt.files:
        print(one_line(f"  {file.path}: {file.size_bytes:,} bytes, {file.num_found or 'none'} found"))
    for path in receipt.removed_backups:
        print(one_line(f"  {path}: removed"))
    print("Out of reach: " + "; ".join(receipt.out_of_reach) + ".")
    if not receipt.is_complete:
        print("Another program still reads the database; the rest is done at the next start.")
