"""How files are read and written: text by numbered lines, strict TOML, whole-or-not-at-all writing, ledgers."""
