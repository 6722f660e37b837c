"""The only place with input and output; every module here wraps one outside thing."""
