"""`podium serve`: systems as models, with the cost of each request, over three client APIs."""
