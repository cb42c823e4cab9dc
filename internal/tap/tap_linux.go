package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tap is an open packet ring. It belongs to one goroutine.
type Tap struct {
	fd      int
	ring    []byte
	block   int // size of a block
	blocks  int
	cur     int // the block that the kernel hands over next
	timeout time.Duration

	remotes []Endpoint
	packet  Packet
	segment Segment
	poll    [1]unix.PollFd

	seen   int64
	read   bool // a block was read since the ring was last found empty
	stats  Stats
	closed bool
}

// Open makes a ring and starts to capture. What is wrong is one of the errors of this package, or an invalid option.
func Open(o Options) (*Tap, error) {
	o, err := o.withDefaults(os.Getpagesize())
	if err != nil {
		return nil, err
	}
	t := &Tap{block: o.BlockSize, blocks: o.Blocks, timeout: o.BlockTimeout}
	var ports []uint16
	for _, r := range o.Remotes {
		e := EndpointOf(r)
		if r.Addr().IsUnspecified() {
			e.ip = [16]byte{}
		}
		t.remotes = append(t.remotes, e)
		if !slices.Contains(ports, r.Port()) {
			ports = append(ports, r.Port())
		}
	}
	filter, err := Filter(ports)
	if err != nil {
		return nil, err
	}
	// protocol 0: nothing arrives before the filter is there and the socket bound
	if t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return nil, refusal(err)
	}
	if err := t.setUp(o, filter); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tap) setUp(o Options, filter []Instruction) error {
	if err := attach(t.fd, filter); err != nil {
		return setUpError("filter", err)
	}
	if err := unix.SetsockoptInt(t.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return setUpError("version", err)
	}
	const frame = 256 // only has to divide a block: packets of this version are as long as they are
	req := unix.TpacketReq3{
		Block_size: uint32(o.BlockSize), Block_nr: uint32(o.Blocks),
		Frame_size: frame, Frame_nr: uint32(o.BlockSize / frame * o.Blocks),
		Retire_blk_tov: uint32(o.BlockTimeout.Milliseconds()),
	}
	if err := unix.SetsockoptTpacketReq3(t.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return setUpError("ring", err)
	}
	ring, err := unix.Mmap(t.fd, 0, o.BlockSize*o.Blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%w: map: %w", ErrMemory, err)
	}
	t.ring = ring
	// all protocols: a socket bound to one of them does not see what goes out
	to := &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: o.Interface}
	if err := unix.Bind(t.fd, to); err != nil {
		return setUpError("bind", err)
	}
	t.seen = time.Now().UnixNano() // before it there was nothing to see
	return nil
}

// bigEndian returns the number whose bytes in memory are those of v in network order.
func bigEndian(v uint16) uint16 {
	b := [2]byte{byte(v >> 8), byte(v)}
	return *(*uint16)(unsafe.Pointer(&b))
}

func attach(fd int, filter []Instruction) error {
	code := make([]unix.SockFilter, len(filter))
	for i, in := range filter {
		code[i] = unix.SockFilter(in)
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
}

// refusal says why there is no packet socket.
func refusal(err error) error {
	switch {
	case errors.Is(err, unix.EPERM) && !hasNetRaw():
		return fmt.Errorf("%w: %w", ErrCapability, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return setUpError("socket", err)
}

// hasNetRaw tells whether this thread has the capability, if only in a user namespace of its own.
func hasNetRaw() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_NET_RAW) != 0
}

func setUpError(step string, err error) error {
	kind := ErrUnsupported // a kernel that looks like Linux but does not know the option
	switch {
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		kind = ErrMemory
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENETDOWN):
		kind = ErrInterface
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		kind = ErrDenied
	}
	return fmt.Errorf("%w: %s: %w", kind, step, err)
}

// Close ends the capture and frees the ring. The second time it does nothing.
func (t *Tap) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	t.count()
	var first error
	if t.ring != nil {
		first = unix.Munmap(t.ring)
		t.ring = nil
	}
	if err := unix.Close(t.fd); first == nil {
		first = err
	}
	return first
}

// errClosed is returned by a Read after Close.
var errClosed = errors.New("tap: read of a closed ring")

// Read hands over every packet of the blocks that the kernel has closed, at most one round of the ring, and returns how many they
// were. When there are none it waits for a block, at most as long as it is told; with 0 it does not wait. each is called on this
// goroutine; the packet is valid until it returns. ErrInterface means that no more packets will come.
func (t *Tap) Read(wait time.Duration, each func(*Packet)) (int, error) {
	if t.closed {
		return 0, errClosed
	}
	if n := t.drain(each); n > 0 {
		return n, nil
	}
	for deadline := time.Now().Add(wait); ; {
		t.poll[0] = unix.PollFd{Fd: int32(t.fd), Events: unix.POLLIN}
		timeout := unix.NsecToTimespec(int64(max(0, time.Until(deadline))))
		_, err := unix.Ppoll(t.poll[:], &timeout, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("tap: poll: %w", err)
		}
		if t.poll[0].Revents&unix.POLLERR != 0 {
			if code, err := unix.GetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
				return 0, fmt.Errorf("%w: %w", ErrInterface, unix.Errno(code))
			}
		}
		if n := t.drain(each); n > 0 || !time.Now().Before(deadline) {
			return n, nil
		}
	}
}

// drain reads the closed blocks.
func (t *Tap) drain(each func(*Packet)) (n int) {
	for range t.blocks {
		h := t.header()
		if atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
			t.idle(h, each)
			return n
		}
		n += t.readBlock(h, each)
		atomic.StoreUint32(&h.Block_status, unix.TP_STATUS_KERNEL)
		t.cur = (t.cur + 1) % t.blocks
		t.read = true
	}
	return n
}

// header returns the header of the block that is next. It begins behind the version and the offset of private data, 4 bytes each.
func (t *Tap) header() *unix.TpacketHdrV1 {
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&t.ring[t.cur*t.block+8]))
}

// idle is called when no closed block is left; h is the block that the kernel fills.
//
// If that is empty, all there was has been read: the kernel counts a packet in its block before it lets it go on to TCP.
//
// Whether packets were lost since the last time is asked here, and nowhere else, since the kernel then ceases to mark blocks.
// They were lost before the block that is being filled: it became free before the last of the others was read.
func (t *Tap) idle(h *unix.TpacketHdrV1, each func(*Packet)) {
	now := time.Now().UnixNano()
	if t.read {
		t.read = false
		if t.count() > 0 {
			t.tellLoss(each)
		}
	}
	if atomic.LoadUint32(&h.Num_pkts) == 0 {
		t.seen = now
	}
}

func (t *Tap) tellLoss(each func(*Packet)) {
	t.packet = Packet{Lost: true}
	each(&t.packet)
}

// SeenUntil returns a stamp before which everything has been read: each packet that the kernel had put into the ring by then has
// been handed over. The ring gets a packet before TCP does, so bytes that a read(2) returned before SeenUntil have their packets
// in the table, or the ring has lost them.
//
// It moves with Read: to the stamp of each packet (those before it in the ring were put there earlier), and to the present when
// the ring is empty. The kernel hands a block over when it is full or, by timer, at most two block timeouts after its first
// packet; so a caller that reads goes on within that time, unless the timers of the machine are late.
func (t *Tap) SeenUntil() int64 { return t.seen }

// see moves SeenUntil to the stamp of a packet; back only if the clock was set back.
func (t *Tap) see(at int64) {
	if at > t.seen || at < t.seen-clockStep {
		t.seen = at
	}
}

// packetAddress is where the link-layer address of a packet is behind its header.
const packetAddress = int(unsafe.Sizeof(unix.Tpacket3Hdr{}))

func (t *Tap) readBlock(h *unix.TpacketHdrV1, each func(*Packet)) (n int) {
	b := t.ring[t.cur*t.block : (t.cur+1)*t.block]
	// Packets are lost between two blocks, while the one before is full and the next still ours. The kernel marks the next, and
	// all that follow until its counters are read.
	if h.Block_status&unix.TP_STATUS_LOSING != 0 {
		t.tellLoss(each)
	}
	at := int(h.Offset_to_first_pkt)
	for left := h.Num_pkts; left > 0; left-- {
		if at+packetAddress+int(unsafe.Sizeof(unix.RawSockaddrLinklayer{})) > len(b) {
			t.stats.Malformed++
			break
		}
		p := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[at]))
		from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&b[at+packetAddress]))
		start := at + int(p.Net)
		end := start + int(p.Snaplen)
		if end > len(b) {
			t.stats.Malformed++
			break
		}
		stamp := int64(p.Sec)*1e9 + int64(p.Nsec)
		t.see(stamp)
		if t.parse(b[start:end], int(p.Len), from.Pkttype, stamp) {
			n++
			each(&t.packet)
		}
		if p.Next_offset == 0 && left > 1 {
			t.stats.Malformed++
			break
		}
		at += int(p.Next_offset)
	}
	return n
}

// parse fills t.packet; false means that the packet is none of ours.
func (t *Tap) parse(b []byte, size int, kind uint8, at int64) bool {
	s := &t.segment
	switch ParseIP(b, size, s) {
	case Accepted:
	case NotTCP:
		t.stats.Other++
		return false
	case Fragment:
		t.stats.Fragments++
		return false
	default:
		t.stats.Malformed++
		return false
	}
	out := kind == kindOutgoing
	t.packet.set(s, out, at)
	if !out && kind != kindHost || !t.wanted(&t.packet.Key.Remote) {
		t.stats.Other++
		return false
	}
	t.stats.Packets++
	return true
}

// wanted tells whether an endpoint is one of the remotes.
func (t *Tap) wanted(e *Endpoint) bool {
	for i := range t.remotes {
		if r := &t.remotes[i]; r.port == e.port && (r.ip == e.ip || r.ip == [16]byte{}) {
			return true
		}
	}
	return false
}

// Stats returns the counts as of the last Read that found the ring empty, or of Close.
func (t *Tap) Stats() Stats { return t.stats }

// count adds up the kernel's counters, which begin anew at each reading, and returns how many packets were lost since the last.
func (t *Tap) count() (dropped int64) {
	s, err := unix.GetsockoptTpacketStatsV3(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	t.stats.Dropped += int64(s.Drops)
	t.stats.Freezes += int64(s.Freeze_q_cnt)
	return int64(s.Drops)
}

// InterfaceFor returns the interface that packets to an address leave by; for an address of this host that is the loopback
// interface. It asks the kernel's routing table, which knows of interfaces without an address of their own, as the host's ends of
// containers are.
func InterfaceFor(to netip.AddrPort) (name string, index int, err error) {
	index, err = route(to.Addr())
	if err != nil {
		return "", 0, fmt.Errorf("route to %v: %w", to.Addr(), err)
	}
	if name, err = interfaceName(index); err != nil {
		return "", 0, fmt.Errorf("%w: index %d: %w", ErrInterface, index, err)
	}
	return name, index, nil
}
