"""What the keys of `--json` mean, as `--help` shows it below the options."""

from __future__ import annotations

import argparse

_PLACE = """\
  file, page, page_label, lines
                 where the passage stands: a page counted from 1 and the label
                 printed on it, or, in a text without pages, its first and last line"""

ASK_KEYS = f"""\
--json prints one object:
  text           the whole answer
  finish_reason  stop (it was done), length (--max-tokens, or the context was
                 full), error; with error, a key error has the sentence
  prompt_tokens, cached_tokens, completion_tokens
                 what was read, how much of that was known already, what was written
  ttft_s, tpot_s seconds until the first token, and for each token after it
  model, backend, seed
                 what answered, and the seed that gives this answer again
  sources        passages of the documents (empty without documents)
  unsupported    with documents: sentences of the answer that no passage says
  notices        sentences about the answer: what is wrong with the model, which
                 documents could not be read, that nothing in it was found

each of the sources:
{_PLACE}
  quote          what stands there
  cited          true: a sentence of the answer rests on it;
                 false: only the passage closest to the question
  verified       true: code found every number, name and quotation of that sentence,
                 and its other words, in the quote or beside it; nothing else is cited.
                 It compares words and does not understand them: read the quote"""

SEARCH_KEYS = f"""\
--json prints one object with the question and hits, best first; each of them:
{_PLACE}
  document       its number in 'inglenook documents list'
  heading        the headings that it stands under, from the outermost
  text, quote    the passage, and the same without the headings it begins with
  score          fused from both ranks; higher is better, it has no meaning of its own
  keyword_rank, vector_rank
                 its place by words and by meaning, from 0; null: not found by it"""


def add_keys(parser: argparse.ArgumentParser, keys: str) -> None:
    """Show the keys below a command's options, line by line."""
    parser.epilog = keys
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
