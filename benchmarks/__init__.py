"""What the bridge costs, as ratios within one run; ``python -m benchmarks`` runs everything."""
