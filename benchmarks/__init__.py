"""Speed and memory, against the roofs of the machine and against other libraries: ``python -m benchmarks [NAME]``."""
