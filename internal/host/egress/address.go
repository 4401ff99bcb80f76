package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"coder/internal/core/message"
)

// Dialer connects to hosts with public addresses, and to others only if Allow permits. The zero Dialer
// is usable.
type Dialer struct {
	// Allow, if not nil, reports whether a host may be reached at any address.
	Allow func(host, port string) bool
	// Lookup and Connect replace the network in tests: they resolve a host and connect to one of its
	// addresses.
	Lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	Connect func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

func (d Dialer) allows(host, port string) bool { return d.Allow != nil && d.Allow(host, port) }

func (d Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (d Dialer) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if d.Connect != nil {
		return d.Connect(ctx, to)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}

// ErrAddress reports a host with a forbidden address.
var ErrAddress = errors.New("only public addresses can be fetched")

// dialTimeout is the time limit for one of a host's addresses.
const dialTimeout = 5 * time.Second

// reservedRanges are non-public ranges that package netip does not know.
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, tunnels
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

// IPv6 ranges that embed an IPv4 address, which decides.
var (
	global6 = netip.MustParsePrefix("2000::/3")
	sixTo4  = netip.MustParsePrefix("2002::/16")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// AddressClass returns why an address is not public, or "" if it is.
func AddressClass(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() { // an embedded IPv4 address decides
		b := a.As16()
		switch plain := a.WithZone(""); {
		case sixTo4.Contains(plain):
			a = netip.AddrFrom4([4]byte(b[2:6]))
		case nat64.Contains(plain):
			a = netip.AddrFrom4([4]byte(b[12:16]))
		}
	}
	switch {
	case !a.IsValid():
		return "invalid"
	case a.IsLoopback():
		return "loopback"
	case a.IsPrivate():
		return "private"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a.IsUnspecified():
		return "unspecified"
	case a.Is6() && !global6.Contains(a.WithZone("")),
		slices.ContainsFunc(reservedRanges, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }):
		return "reserved"
	}
	return ""
}

// refusalFormats describes why an address is not public.
var refusalFormats = map[string]string{
	"invalid": "%s is not a valid address", "loopback": "%s is an address of this machine",
	"private": "%s is a private network address", "link-local": "%s is a link-local address",
	"multicast": "%s is a multicast address", "unspecified": "%s is an unspecified address",
	"reserved": "%s is a reserved address",
}

// CheckAddress returns an error if a, an address of host, is not public.
func CheckAddress(host string, a netip.Addr) error {
	reason := refusalFormats[AddressClass(a)]
	switch {
	case reason == "":
		return nil
	case host == a.String():
		return message.Errorf("%w: "+reason, ErrAddress, host)
	}
	return message.Errorf("%w: "+reason, ErrAddress, host+"="+a.String())
}

// Resolve resolves a host and refuses it if any of its addresses is forbidden: the public ones may
// only be there to pass this check.
func (d Dialer) Resolve(ctx context.Context, host, port string) ([]netip.Addr, error) {
	list := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		list = append(list, a)
	} else if list, err = d.lookup(ctx, host); err != nil {
		if named := (*net.DNSError)(nil); errors.As(err, &named) && ctx.Err() == nil {
			err = errors.New(named.Err) // the rest repeats the host and names the server
		}
		return nil, message.Errorf("look up %s: %w", host, err)
	}
	if len(list) == 0 {
		return nil, message.Errorf("look up %s: it has no address", host)
	}
	for _, a := range list {
		if err := CheckAddress(host, a); err != nil && !d.allows(host, port) {
			return nil, err
		}
	}
	return list, nil
}

// Dial connects to the very address that it checked, so that the name cannot resolve differently in
// between.
func (d Dialer) Dial(ctx context.Context, _, to string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	list, err := d.Resolve(ctx, host, port)
	if err != nil {
		return nil, err
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, a := range list {
		attempt, cancel := ctx, func() {}
		if i < len(list)-1 { // only the last attempt may use all the remaining time
			attempt, cancel = context.WithTimeout(ctx, dialTimeout)
		}
		conn, err := d.connect(attempt, netip.AddrPortFrom(a.Unmap(), uint16(number)))
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
