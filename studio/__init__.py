"""Studio: the lab in a browser. A front end like the command line; nothing imports it."""
