// Package hosts provides host patterns for safety.network, and parses the hosts that programs want to
// reach.
package hosts

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"coder/internal/core/message"
)

// Target is a host and port. Its host has the canonical spelling that [Canonical] returns.
type Target struct{ Host, Port string }

// String omits the usual web ports, which every pattern without a port includes.
func (t Target) String() string {
	if isDefaultPort(t.Port) {
		return t.Host
	}
	return net.JoinHostPort(t.Host, t.Port)
}

// isDefaultPort reports whether port is a default web port.
func isDefaultPort(port string) bool { return port == "80" || port == "443" }

// NewTarget parses "host:port" as a client spells it; port is the default.
func NewTarget(address, port string) (Target, error) {
	host, own, err := splitPort(address)
	if err != nil {
		return Target{}, err
	}
	if own != "" {
		port = own
	}
	host, err = Canonical(host)
	return Target{host, port}, err
}

// splitPort separates a host from its port, which may be empty.
func splitPort(address string) (host, port string, err error) {
	bare, ipv6 := strings.CutPrefix(address, "[")
	if !ipv6 && strings.Count(address, ":") != 1 {
		return address, "", nil // a name, or an IPv6 address without brackets
	}
	if host, ok := strings.CutSuffix(bare, "]"); ipv6 && ok {
		return host, "", nil
	}
	if host, port, err = net.SplitHostPort(address); err != nil {
		return "", "", errors.New("not a host and port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
		return "", "", message.Errorf("%q is not a port", port)
	}
	return host, port, nil
}

// maxNameLen is the longest name that DNS allows.
const maxNameLen = 253

// Canonical returns the canonical spelling of a host: lower case, without the final dot, an address in its
// usual form. It rejects what two programs could read differently: addresses in decimal, octal or
// hexadecimal numbers, zones, a user name before the host.
func Canonical(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errors.New("an address with a zone is not a network host")
		}
		return a.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > maxNameLen {
		return "", errors.New("not a valid host name")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", errors.New("not a valid host name")
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 0x80:
				return "", errors.New("write the name in its ASCII form (xn--…)")
			case c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z'):
				return "", message.Errorf("%q is not allowed in a host name", c)
			}
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return "", errors.New("write an address as four decimal numbers, such as 192.0.2.1")
	}
	return name, nil
}

// isNumber reports whether programs parse a name with this last label as an address.
func isNumber(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// Pattern is one host, or all hosts below a domain, with one port or the usual web ports.
type Pattern struct {
	host       string // a name, an address, or the parent domain
	subdomains bool
	port       string // empty means the usual ports
}

// Parse parses a pattern: "example.org", "*.example.org", "example.org:8080".
func Parse(text string) (p Pattern, err error) {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		rest, _, _ = strings.Cut(rest, "/")
		return p, message.Errorf("leave out %s://, write %q", scheme, rest)
	}
	host, port, err := splitPort(text)
	if err != nil {
		return p, err
	}
	p.port = port
	p.host, p.subdomains = strings.CutPrefix(host, "*.")
	switch {
	case host == "*":
		return p, errors.New("use true instead of a list to allow every host")
	case strings.Contains(p.host, "*"):
		return p, errors.New("a star is allowed only before the first dot, as in *.example.org")
	}
	if p.host, err = Canonical(p.host); err != nil {
		return p, err
	}
	if _, err := netip.ParseAddr(p.host); err == nil && p.subdomains {
		return p, errors.New("an address has no subdomains")
	}
	return p, nil
}

// String returns the pattern in the form that Parse reads.
func (p Pattern) String() string {
	host := p.host
	if p.subdomains {
		host = "*." + host
	}
	if p.port == "" {
		return host
	}
	return net.JoinHostPort(host, p.port)
}

// Matches reports whether the pattern matches t.
func (p Pattern) Matches(t Target) bool {
	return p.matchesHost(t.Host) && (p.port == t.Port || p.port == "" && isDefaultPort(t.Port))
}

func (p Pattern) matchesHost(host string) bool {
	return host == p.host && !p.subdomains || p.subdomains && strings.HasSuffix(host, "."+p.host)
}

// IsAddress reports whether the pattern is an address rather than a name.
func (p Pattern) IsAddress() bool {
	_, err := netip.ParseAddr(p.host)
	return err == nil
}

// Intersect returns the intersection of two patterns, if there is one.
func (p Pattern) Intersect(q Pattern) (Pattern, bool) {
	narrow, wide := p, q
	if p.subdomains && (!q.subdomains || strings.HasSuffix(q.host, "."+p.host)) {
		narrow, wide = q, p
	}
	if !wide.matchesHost(narrow.host) && (narrow.host != wide.host || narrow.subdomains != wide.subdomains) {
		return Pattern{}, false
	}
	switch {
	case p.port == q.port:
	case p.port == "" && isDefaultPort(q.port):
		narrow.port = q.port
	case q.port == "" && isDefaultPort(p.port):
		narrow.port = p.port
	default:
		return Pattern{}, false
	}
	return narrow, true
}
