"""The chat page and the list of chats."""
