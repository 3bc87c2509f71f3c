"""Rules, and the decision that follows from them."""
