"""What a manifest says, computed the plain way: float64, one text at a time, masked rows left out."""
