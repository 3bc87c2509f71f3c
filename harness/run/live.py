"""A live bi-encoder over a suite: encode in chunks, search exactly, scatter back to case IDs.

The candidate is given texts and a side, nothing else: no judgement, label, role or slice.
"""




# Documents encoded and held at once; the vectors of all others lie on disk.
CHUNK = 8192
