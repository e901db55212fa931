"""What is measured, and how; `python -m benchmarks.<name>` runs one of them."""
