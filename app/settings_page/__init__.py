"""The settings page, and the personas on it."""
