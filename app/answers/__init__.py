"""One turn: what a question is answered from, and what each sentence of the answer rests on."""
