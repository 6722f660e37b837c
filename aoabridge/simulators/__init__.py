"""Far ends without IO: what the demo, the simulators of the command line and the tests talk to."""
