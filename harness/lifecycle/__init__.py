"""What a release has proven so far."""
