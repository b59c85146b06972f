"""What a model is: its spec, the one decoder, rotary frequencies, and who supports which architecture."""
