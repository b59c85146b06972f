"""The window in other languages: one JSON file a language, from the English text to the translated one."""
