"""A suite, a candidate and a parent become one output a case, scattered back to the case's own ID."""
