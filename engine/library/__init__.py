"""How models come into the library and what is known of them."""
