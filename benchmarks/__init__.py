"""What is measured of Ghost. Each module prints its figures; `python -m benchmarks` runs them all, or those named."""
