"""Files of questions with their truth, as teams write them."""
