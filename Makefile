PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS = 1
export HF_HUB_OFFLINE = 1

.PHONY: demo test lint bench clean

demo: .venv/installed  ## the main job on the embedded suite, and a pair that must fail
	$(BIN)/harness demo

test: .venv/installed  ## every test
	$(BIN)/pytest -n 2

lint: .venv/installed  ## style, types and the arrows between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed  ## every ratio of benchmarks/RESULTS.md
	for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv .harness build *.egg-info

# torch goes in first and alone: with no torch there, other packages would bring a CUDA build of several gigabytes.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
