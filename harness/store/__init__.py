"""DuckDB: what happened on every case. The only room with duckdb."""
