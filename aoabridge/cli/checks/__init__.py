"""What ``aoabridge doctor`` looks at: this machine, its USB, its network, the installation; without any daemon."""

from aoabridge.cli.checks.result import Check, Outcome

__all__ = ["Check", "Outcome"]
