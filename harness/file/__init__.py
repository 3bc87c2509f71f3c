"""How files are read and written: numbered lines, strict TOML, kept readings, whole-or-not-at-all writing, ledgers."""
