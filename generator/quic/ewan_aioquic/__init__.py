"""ewan-aioquic: one transfer by QUIC, over the library aioquic; the same command line and the same record as ewan-quic.

In: the command line, which src/arguments.rs describes, and EWAN_T0_UNIX_NS and EWAN_OUT of the environment; SIGTERM or
SIGINT ends it early. Out: one line of JSON on standard output; exit status 1, with one line on standard error, where
there was no transfer. Times are ns from T0. aioquic keeps no clock and no socket: this program waits for packets and
timers, to the microsecond. Some of what is counted is private to aioquic, whose version is pinned for that.
generator/quic/aioquic.sh puts it, with the Python that has aioquic, beside ewan-quic."""
