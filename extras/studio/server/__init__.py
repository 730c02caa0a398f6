"""What the page asks for: an application of Starlette that calls the functions of the command line."""
