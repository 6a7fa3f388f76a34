"""Work cut into pieces that files hold: vectors of a corpus, and what is exactly nearest in it."""
