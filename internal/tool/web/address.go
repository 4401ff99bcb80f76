package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrAddress is the error of a host whose address may not be reached.
var ErrAddress = errors.New("only public addresses can be fetched")

// patience is how long one of several addresses of a host may take to answer.
const patience = 5 * time.Second

// reserved are the ranges, beyond those that package netip knows, which are not
// part of the public network.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // behind the provider's address translation
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays to version 6
	netip.MustParsePrefix("198.18.0.0/15"),   // measurement
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // the future, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, tunnels
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

// Addresses of version 6 that stand for one of version 4, which is what counts.
var (
	global6 = netip.MustParsePrefix("2000::/3")
	sixTo4  = netip.MustParsePrefix("2002::/16")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// why tells what keeps an address from being public; "" if nothing does.
func why(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() { // it may stand for one of version 4, which is what counts
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
		slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }):
		return "reserved"
	}
	return ""
}

// allowed reports whether a host may be reached whatever its address is.
func (o Options) allowed(host, port string) bool { return o.AllowPrivate || o.listed(host, port) }

// listed reports whether a host is one of those the user named.
func (o Options) listed(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(o.AllowHosts, func(rule string) bool {
		rule = strings.ToLower(rule)
		if above, ok := strings.CutPrefix(rule, "*"); ok && strings.HasPrefix(above, ".") {
			return strings.HasSuffix(host, above)
		}
		return rule == host || rule == net.JoinHostPort(host, port)
	})
}

// plainlyForbidden refuses what need not be looked up to be refused.
func (o Options) plainlyForbidden(u *url.URL) error {
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); err != nil && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		a, err = netip.IPv6Loopback(), nil
	}
	if err != nil || o.allowed(host, portOf(u)) {
		return nil
	}
	return refuse(host, a)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func refuse(host string, a netip.Addr) error {
	reason := why(a)
	switch {
	case reason == "":
		return nil
	case host == a.String():
		return fmt.Errorf("%w: %s is %s", ErrAddress, host, reason)
	}
	return fmt.Errorf("%w: %s is at %s, which is %s", ErrAddress, host, a, reason)
}

// addresses looks a host up and refuses it if any of its addresses may not be
// reached: one that is public in part may be public only to pass this check.
func (o Options) addresses(ctx context.Context, host, port string) ([]netip.Addr, error) {
	list := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		list = append(list, a)
	} else if list, err = o.Lookup(ctx, host); err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", host)
	}
	for _, a := range list {
		if err := refuse(host, a); err != nil && !o.allowed(host, port) {
			return nil, err
		}
	}
	return list, nil
}

// dial connects to a host at an address that was checked: the very one, so that
// the name cannot come to mean another in between.
func (o Options) dial(ctx context.Context, _, to string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	list, err := o.addresses(ctx, host, port)
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
		if i < len(list)-1 { // only the last may take all the time there is
			attempt, cancel = context.WithTimeout(ctx, patience)
		}
		conn, err := o.Connect(attempt, netip.AddrPortFrom(a.Unmap(), uint16(number)))
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
