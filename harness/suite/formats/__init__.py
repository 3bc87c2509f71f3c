"""Readers: from a format's files to one collection, with the file and line of everything that may be refused."""
