"""Wires the adapters to the pure core and runs them."""
