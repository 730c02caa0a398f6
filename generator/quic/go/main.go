// ewan-quic-go: one transfer by QUIC, over the library quic-go; the same command line and the same record as ewan-quic.
//
// In: the command line, which ../src/arguments.rs describes, and EWAN_T0_UNIX_NS of the environment; SIGTERM or SIGINT
// ends it early. Out: one line of JSON on standard output; exit status 1, with one line on standard error, where there
// was no transfer. Times are ns from T0. It has neither HTTP/3 nor qlog, and one processor: in the virtual clock the same
// seed then gives the same bytes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	clock := startClock()
	runtime.GOMAXPROCS(1)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if err := run(clock, stop); err != nil {
		fmt.Fprintln(os.Stderr, "ewan-quic-go:", err)
		os.Exit(1)
	}
}

func run(clock Clock, stop <-chan os.Signal) error {
	request, err := read(os.Args[1:])
	if err != nil {
		return err
	}
	stopped, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop
		cancel()
	}()
	transfer := Transfer{Request: request, clock: clock, stopped: stopped}
	record := Record{Format: "ewan-quic/1", End: request.End, Library: "quic-go", BegunNs: clock.begunNs}
	if request.End == "send" {
		record.Streams, err = transfer.send()
	} else {
		record.Streams, err = transfer.receive()
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(record)
}
