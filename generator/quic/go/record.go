package main

// Record is the line that the program prints, as ../src/record.rs has it.
type Record struct {
	Format  string    `json:"format"`
	End     string    `json:"end"`
	Library string    `json:"library"`
	BegunNs int64     `json:"begun_ns"`
	Streams []*Stream `json:"streams"`
}

// Stream is one connection, as this end knows it.
type Stream struct {
	Stream           int      `json:"stream"`
	StartedNs        *int64   `json:"started_ns"`
	ConnectedNs      *int64   `json:"connected_ns"`
	EndedNs          *int64   `json:"ended_ns"`
	LastNs           *int64   `json:"last_ns"`
	Bytes            int64    `json:"bytes"`
	Error            *string  `json:"error"`
	UDPSent          Counted  `json:"udp_sent"`
	UDPReceived      Counted  `json:"udp_received"`
	SentPackets      *uint64  `json:"sent_packets"`
	LostPackets      *uint64  `json:"lost_packets"`
	CongestionEvents *uint64  `json:"congestion_events"`
	MinRTTNs         *int64   `json:"min_rtt_ns"`
	PayloadBytes     *int64   `json:"payload_bytes"`
	Bins             []Bin    `json:"bins,omitempty"`
	Samples          []Sample `json:"samples,omitempty"`
}

// Counted is a number of UDP datagrams, and the bytes in them.
type Counted struct {
	Datagrams int64 `json:"datagrams"`
	Bytes     int64 `json:"bytes"`
}

// Bin is what came in order in one bin; the library does not tell what came beyond a gap.
type Bin struct {
	Number    int64  `json:"number"`
	Arrived   *int64 `json:"arrived"`
	Delivered int64  `json:"delivered"`
}

// Sample is the state of a sender.
type Sample struct {
	TimeNs           int64   `json:"time_ns"`
	CwndBytes        uint64  `json:"cwnd_bytes"`
	SsthreshBytes    *uint64 `json:"ssthresh_bytes"`
	InFlightBytes    *uint64 `json:"in_flight_bytes"`
	PacingBps        *uint64 `json:"pacing_bps"`
	SrttNs           int64   `json:"srtt_ns"`
	RttvarNs         int64   `json:"rttvar_ns"`
	MtuBytes         int64   `json:"mtu_bytes"`
	SentPackets      uint64  `json:"sent_packets"`
	LostPackets      uint64  `json:"lost_packets"`
	CongestionEvents *uint64 `json:"congestion_events"`
}

func (stream *Stream) fail(what string, err error) {
	if stream.Error == nil {
		text := what + ": " + err.Error()
		stream.Error = &text
	}
}
