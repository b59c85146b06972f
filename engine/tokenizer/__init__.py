"""Text to token ids and back: vocabularies, chat templates, prompts by segment, byte-exact detokenising.

`tokenizer.Tokenizer` is the way in. Importing the package loads nothing: the template worker starts from here.
"""
