"""A service that is asked over HTTP: request, answer, and the vectors and filters between them."""
