"""The server of Studio's page: an application of Starlette that calls the functions of the command line."""
