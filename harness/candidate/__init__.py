"""Adapters that run a release. The only room with torch."""
