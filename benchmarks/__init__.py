"""What the bridge costs, as ratios within one run; ``python -m benchmarks`` runs everything."""

LONG_VARIABLE = "AOABRIDGE_BENCH_LONG"  # set: the overload runs take a minute each
