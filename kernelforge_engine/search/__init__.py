"""Monte Carlo tree search as pure functions over plain records."""
