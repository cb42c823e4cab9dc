// Package tap dates every byte of chosen TCP connections by the packets that carried it.
//
// A socket gives its bytes with the time of the last read, or of the last packet of a merged read; a reader that is late gets
// wrong times. The packet ring (AF_PACKET, TPACKET_V3) is filled by the kernel, one stamp a packet, whether anybody reads it or
// not. So:
//
//	Tap (Linux)  ring -> Packet: addresses, sequence number, payload length, stamp
//	Table        Packet -> Conn: the connection that it belongs to, by addresses, ports and generation
//	Flow         sequence numbers -> offsets in the stream; Mark: the bytes before End were all there at At
//
// The last two are pure and take packets of a capture as well. Nothing here has a lock: one goroutine owns a Tap and its Table,
// reads the one into the other and asks the flows.
//
// A stamp is CLOCK_REALTIME in ns, as the kernel took it; who needs another clock converts it. A byte whose packet was not
// captured has no stamp. It never has a neighbour's.
package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Options say what to capture. The zero values of the sizes are the defaults.
type Options struct {
	// Interface is the index of the interface that the packets pass, as InterfaceFor gives it.
	Interface int
	// Remotes are the far ends of the connections. An unspecified address (0.0.0.0, ::) stands for every address.
	Remotes []netip.AddrPort

	// Blocks and BlockSize are the ring: 512 blocks of 16 KiB. It must hold what comes while nobody reads. That is bounded by
	// packets, some 55,000 of IPv4 (0.55 s at 100,000 packets/s), and by time, Blocks x BlockTimeout (5 s), since the kernel
	// closes a block after its timeout however little is in it. BlockSize is a multiple of the page size.
	Blocks, BlockSize int
	// BlockTimeout is after how long the kernel hands over a block that is not full, 0 = 10 ms; a packet may wait twice as long.
	// It has no influence on stamps.
	BlockTimeout time.Duration
}

// Limits of the options.
const (
	defaultBlocks       = 512
	defaultBlockSize    = 16 << 10
	defaultBlockTimeout = 10 * time.Millisecond
	maxRing             = 1 << 30 // bytes that one ring may pin; the default is 8 MiB
	maxBlockTimeout     = time.Second
)

// withDefaults fills in the sizes and checks them.
func (o Options) withDefaults(pageSize int) (Options, error) {
	if o.Blocks == 0 {
		o.Blocks = defaultBlocks
	}
	if o.BlockSize == 0 {
		o.BlockSize = defaultBlockSize
	}
	if o.BlockTimeout == 0 {
		o.BlockTimeout = defaultBlockTimeout
	}
	switch {
	case o.Interface <= 0:
		return o, fmt.Errorf("%w: index %d", ErrInterface, o.Interface)
	case len(o.Remotes) == 0:
		return o, errors.New("tap: no remote address to capture")
	case o.Blocks < 2 || o.BlockSize < pageSize || o.BlockSize%pageSize != 0:
		return o, fmt.Errorf("tap: a ring of %d blocks of %d bytes: it takes 2 blocks or more, of whole pages (%d)",
			o.Blocks, o.BlockSize, pageSize)
	case o.Blocks > maxRing/o.BlockSize:
		return o, fmt.Errorf("tap: a ring of %d blocks of %d bytes is above %d bytes", o.Blocks, o.BlockSize, maxRing)
	case o.BlockTimeout < time.Millisecond || o.BlockTimeout > maxBlockTimeout:
		return o, fmt.Errorf("tap: block timeout %v is not within 1 ms and %v", o.BlockTimeout, maxBlockTimeout)
	}
	return o, nil
}

// Stats count since Open.
type Stats struct {
	Packets   int64 // handed over
	Dropped   int64 // lost by the kernel, nearly always because the ring was full
	Freezes   int64 // times that the ring was full
	Malformed int64 // ignored: a header that contradicts itself or the packet's length
	Fragments int64 // ignored: pieces of an IP packet
	Other     int64 // ignored: neither from nor to one of the remotes, or no TCP
}

// Why there is no ring. Each is one sentence that can follow "wire stamps are off: ".
var (
	ErrUnsupported = errors.New("this system has no packet rings (AF_PACKET with TPACKET_V3 is Linux only)")
	ErrCapability  = errors.New("capturing packets needs the capability CAP_NET_RAW")
	ErrDenied      = errors.New("packet sockets are refused here (a seccomp filter, a user namespace, or a kernel without them)")
	ErrMemory      = errors.New("there is no memory for the packet ring (a memory limit, or one of locked memory)")
	ErrInterface   = errors.New("there is no such network interface, or it went down")
)
