package main

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	chunkBytes = int64(1 << 16)
	// The bytes of a transfer that only its time ends.
	endless = int64(math.MaxInt64)
	// The datagrams of quic-go before its probes of the path find a larger size.
	firstBytes  = 1280
	connectTime = 30 * time.Second
	idleTime    = 30 * time.Second
	// The end that has the shorter time decides. An application that limits its sender may be silent for long.
	longTime = 24 * time.Hour
	// An end that closed a connection answers for as long at most.
	longestLinger = time.Second
)

// Transfer is what both ends know of it. A signal ends `stopped`.
type Transfer struct {
	Request
	clock   Clock
	stopped context.Context
}

func (transfer *Transfer) config(events *Events, idle time.Duration) *quic.Config {
	window := uint64(transfer.WindowBytes)
	return &quic.Config{
		HandshakeIdleTimeout: connectTime, MaxIdleTimeout: idle,
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
		Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return events },
	}
}

// beginNs is when a sender begins.
func (transfer *Transfer) beginNs() int64 {
	if transfer.At {
		return transfer.AtNs
	}
	return transfer.clock.begunNs + transfer.AfterNs
}

// span is the time that a sender has: until an instant, or a signal.
func (transfer *Transfer) span() (context.Context, context.CancelFunc) {
	if transfer.ForNs > 0 {
		return context.WithTimeout(transfer.stopped, transfer.clock.until(transfer.beginNs()+transfer.ForNs))
	}
	return context.WithCancel(transfer.stopped)
}

// send makes a connection for each stream, each with a socket of its own, all at the same time.
func (transfer *Transfer) send() ([]*Stream, error) {
	any := netip.IPv4Unspecified()
	if transfer.Address.Addr().Is6() {
		any = netip.IPv6Unspecified()
	}
	var senders []*Sender
	for number := range transfer.Streams {
		socket, err := openSocket(netip.AddrPortFrom(any, 0), transfer.BufferBytes)
		if err != nil {
			return nil, err
		}
		sender := &Sender{Transfer: transfer, socket: socket, stream: &Stream{Stream: number}}
		sender.events.mtu = firstBytes
		senders = append(senders, sender)
	}
	time.Sleep(transfer.clock.until(transfer.beginNs()))
	span, cancel := transfer.span()
	defer cancel()
	ended := make(chan *Stream)
	for _, sender := range senders {
		go func() {
			sender.run(span)
			ended <- sender.stream
		}()
	}
	return collect(ended, len(senders)), nil
}

// Sender is that of one stream.
type Sender struct {
	*Transfer
	socket *CountingSocket
	stream *Stream
	events Events
}

func (sender *Sender) run(span context.Context) {
	clock, stream := sender.clock, sender.stream
	start := clock.now()
	stream.StartedNs = &start
	idle := idleTime
	if sender.Writes != nil {
		idle = longTime
	}
	transport := quic.Transport{Conn: sender.socket}
	defer transport.Close()
	to := net.UDPAddrFromAddrPort(sender.Address)
	connection, err := transport.Dial(span, to, clientTLS(stream.Stream), sender.config(&sender.events, idle))
	if err != nil {
		if span.Err() != nil {
			ended := "ended before it was connected"
			stream.Error = &ended
			return
		}
		stream.fail("connecting", err)
		return
	}
	now := clock.now()
	stream.ConnectedNs = &now
	written := make(chan error, 1)
	go func() {
		written <- sender.write(span, connection)
		close(written)
	}()
	err = sender.sampled(span, connection, written)
	switch {
	case err == nil:
		last := clock.now()
		stream.LastNs = &last
	case span.Err() == nil:
		stream.fail("sending", err)
	}
	end := clock.now()
	stream.EndedNs = &end
	sender.sample(connection)
	_ = connection.CloseWithError(0, "")
	<-written
	linger(connection.ConnectionStats(), sender.stopped)
	sender.count(connection, sender.socket, &sender.events, stream)
}

// sampled waits for the end of the work or of the time, and notes the state at each multiple of the interval from T0.
func (sender *Sender) sampled(span context.Context, connection *quic.Conn, written <-chan error) error {
	every := sender.SampleNs
	due := make(<-chan time.Time)
	for {
		if every > 0 {
			due = time.After(sender.clock.until((sender.clock.now()/every + 1) * every))
		}
		select {
		case err := <-written:
			return err
		case <-span.Done():
			return span.Err()
		case <-due:
			sender.sample(connection)
		}
	}
}

// write fills a stream of its own, and waits until the receiver has closed the connection, which has all then.
func (sender *Sender) write(span context.Context, connection *quic.Conn) error {
	stream, err := connection.OpenUniStreamSync(span)
	if err != nil {
		return err
	}
	left := endless
	if sender.Bytes != nil {
		left = sender.Bytes[sender.stream.Stream]
	}
	zeros := make([]byte, chunkBytes)
	fill := func(bytes int64) error {
		for bytes > 0 && left > 0 {
			size := min(chunkBytes, bytes, left)
			written, err := stream.Write(zeros[:size])
			sender.stream.Bytes += int64(written)
			if err != nil {
				return err
			}
			bytes, left = bytes-size, left-size
		}
		return nil
	}
	if sender.Writes == nil {
		err = fill(endless)
	} else {
		for due := range sender.Writes.schedule(sender.Seed, sender.beginNs()) {
			select {
			case <-time.After(sender.clock.until(due.atNs)):
				err = fill(due.bytes)
			case <-span.Done():
				err = span.Err()
			}
			if err != nil || left == 0 {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if err = stream.Close(); err != nil {
		return err
	}
	<-connection.Context().Done()
	return unlessClosed(context.Cause(connection.Context()))
}

// unlessClosed returns nil for the error of a connection that the other end closed because all is done.
func unlessClosed(err error) error {
	var closed *quic.ApplicationError
	if errors.As(err, &closed) && closed.ErrorCode == 0 {
		return nil
	}
	return err
}

func (sender *Sender) sample(connection *quic.Conn) {
	stats := connection.ConnectionStats()
	window, mtu, lost := sender.events.values()
	sender.stream.Samples = append(sender.stream.Samples, Sample{
		TimeNs: sender.clock.now(), CwndBytes: uint64(window), SrttNs: int64(stats.SmoothedRTT),
		RttvarNs: int64(stats.MeanDeviation), MtuBytes: int64(mtu), SentPackets: stats.PacketsSent, LostPackets: lost,
	})
}

// receive takes all connections by one socket. It ends when as many have ended as were asked for.
func (transfer *Transfer) receive() ([]*Stream, error) {
	socket, err := openSocket(transfer.Address, transfer.BufferBytes)
	if err != nil {
		return nil, err
	}
	own, err := serverTLS(transfer.Streams)
	if err != nil {
		return nil, err
	}
	transport := quic.Transport{Conn: socket}
	defer transport.Close()
	listener, err := transport.Listen(own, transfer.config(&Events{}, longTime))
	if err != nil {
		return nil, err
	}
	ended := make(chan *Stream, transfer.Streams)
	accepted := 0
	for accepted < transfer.Streams {
		connection, err := listener.Accept(transfer.stopped)
		if err != nil {
			break
		}
		accepted++
		go func() { ended <- transfer.take(connection, socket) }()
	}
	return collect(ended, accepted), nil
}

// take reads the stream of a connection, closes the connection when it has all, and answers for a while.
func (transfer *Transfer) take(connection *quic.Conn, socket *CountingSocket) *Stream {
	now := transfer.clock.now()
	number := streamOf(connection.ConnectionState().TLS.NegotiatedProtocol)
	stream := &Stream{Stream: number, StartedNs: &now, ConnectedNs: &now}
	if err := unlessClosed(transfer.read(connection, stream)); err != nil && transfer.stopped.Err() == nil {
		stream.fail("receiving", err)
	}
	end := transfer.clock.now()
	stream.EndedNs = &end
	_ = connection.CloseWithError(0, "")
	linger(connection.ConnectionStats(), transfer.stopped)
	transfer.count(connection, socket, nil, stream)
	return stream
}

func (transfer *Transfer) read(connection *quic.Conn, stream *Stream) error {
	from, err := connection.AcceptUniStream(transfer.stopped)
	if err != nil {
		return err
	}
	defer context.AfterFunc(transfer.stopped, func() { _ = from.SetReadDeadline(time.Unix(1, 0)) })()
	buffer := make([]byte, chunkBytes)
	for {
		got, err := from.Read(buffer)
		if got > 0 {
			now := transfer.clock.now()
			stream.LastNs = &now
			stream.Bytes += int64(got)
			if transfer.BinNs > 0 {
				stream.deliver(now/transfer.BinNs, int64(got))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (stream *Stream) deliver(bin, bytes int64) {
	last := len(stream.Bins) - 1
	if last < 0 || stream.Bins[last].Number != bin {
		stream.Bins = append(stream.Bins, Bin{Number: bin})
		last++
	}
	stream.Bins[last].Delivered += bytes
}

// count notes the counters of a connection that is over.
func (transfer *Transfer) count(connection *quic.Conn, socket *CountingSocket, events *Events, stream *Stream) {
	stats := connection.ConnectionStats()
	stream.UDPSent, stream.UDPReceived = socket.counted(connection.RemoteAddr())
	stream.SentPackets = &stats.PacketsSent
	if stats.MinRTT > 0 {
		rtt := int64(stats.MinRTT)
		stream.MinRTTNs = &rtt
	}
	if events != nil {
		_, mtu, lost := events.values()
		size := int64(mtu)
		stream.LostPackets, stream.PayloadBytes = &lost, &size
	}
}

// linger lets the library answer a peer that did not hear of the end, for the time in which it would ask.
func linger(stats quic.ConnectionStats, stopped context.Context) {
	select {
	case <-time.After(min(longestLinger, 3*(stats.SmoothedRTT+4*stats.MeanDeviation))):
	case <-stopped.Done():
	}
}

// collect waits for the records of all streams, and puts them in order.
func collect(ended <-chan *Stream, all int) []*Stream {
	streams := []*Stream{}
	for range all {
		streams = append(streams, <-ended)
	}
	slices.SortFunc(streams, func(a, b *Stream) int { return a.Stream - b.Stream })
	return streams
}
