package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// CountingSocket is a UDP socket that counts the datagrams from and to each peer. quic-go takes what has these methods for a
// socket with control messages, and sends several datagrams by one call (UDP GSO) where the kernel can do that.
type CountingSocket struct {
	*net.UDPConn
	batch *ipv4.PacketConn

	lock     sync.Mutex
	sent     map[netip.AddrPort]*Counted
	received map[netip.AddrPort]*Counted
	largest  int64
}

func openSocket(at netip.AddrPort, buffer int64) (*CountingSocket, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	// The buffer is as large as is asked for, or as this user may have.
	err = raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, int(buffer)) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, int(buffer))
		}
	})
	counts := func() map[netip.AddrPort]*Counted { return make(map[netip.AddrPort]*Counted) }
	return &CountingSocket{UDPConn: conn, batch: ipv4.NewPacketConn(conn), sent: counts(), received: counts()}, err
}

// ReadBatch receives datagrams.
func (socket *CountingSocket) ReadBatch(messages []ipv4.Message, flags int) (int, error) {
	got, err := socket.batch.ReadBatch(messages, flags)
	socket.lock.Lock()
	defer socket.lock.Unlock()
	for _, each := range messages[:max(got, 0)] {
		if from, ok := each.Addr.(*net.UDPAddr); ok {
			count(socket.received, from.AddrPort(), 1, int64(each.N))
		}
	}
	return got, err
}

// WriteMsgUDP sends a datagram, or as many as a control message says.
func (socket *CountingSocket) WriteMsgUDP(data, control []byte, to *net.UDPAddr) (int, int, error) {
	written, more, err := socket.UDPConn.WriteMsgUDP(data, control, to)
	if err == nil {
		size := segment(control, len(data))
		socket.lock.Lock()
		defer socket.lock.Unlock()
		count(socket.sent, to.AddrPort(), int64((len(data)+size-1)/size), int64(len(data)))
		socket.largest = max(socket.largest, int64(size))
	}
	return written, more, err
}

// segment returns the bytes of each datagram but the last one, which may have less.
func segment(control []byte, all int) int {
	for len(control) > 0 {
		header, body, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			break
		}
		if header.Level == syscall.IPPROTO_UDP && header.Type == unix.UDP_SEGMENT {
			return int(binary.NativeEndian.Uint16(body))
		}
		control = rest
	}
	return max(all, 1)
}

func count(counts map[netip.AddrPort]*Counted, peer netip.AddrPort, datagrams, bytes int64) {
	peer = netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port())
	if counts[peer] == nil {
		counts[peer] = &Counted{}
	}
	counts[peer].Datagrams += datagrams
	counts[peer].Bytes += bytes
}

// counted returns what was sent to a peer, and received from it.
func (socket *CountingSocket) counted(peer net.Addr) (sent, received Counted) {
	address := peer.(*net.UDPAddr).AddrPort()
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	socket.lock.Lock()
	defer socket.lock.Unlock()
	if found := socket.sent[address]; found != nil {
		sent = *found
	}
	if found := socket.received[address]; found != nil {
		received = *found
	}
	return sent, received
}
