"""`podium serve`: systems as models over three client APIs, with the cost of each request."""
