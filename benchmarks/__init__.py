"""Speed of the kernels, against this machine's roofs and against other libraries: ``python -m benchmarks MODEL``."""
