"""Text to token ids and back: vocabularies, chat templates, prompt segments, byte-exact streaming."""
