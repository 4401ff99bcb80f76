package rule

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// HostOf is the host of an address as permissions know it: lower case, without
// a dot at its end, with the port unless it is that of the web. It is empty
// where the address holds a name or password, or a host that is not written in
// plain letters: whose that is cannot be told at a glance.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	} else if host == "" || strings.ContainsFunc(host, notPlain) {
		return ""
	}
	switch port := u.Port(); {
	case port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https":
		return host
	default:
		return net.JoinHostPort(host, port)
	}
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// HostsIn are the hosts that a person's words name: by an address, or by a bare
// name under one of the domains that no file is named after.
func HostsIn(words string) []string {
	var hosts []string
	add := func(host string) {
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for word := range strings.FieldsFuncSeq(words, between) {
		lower := strings.ToLower(word)
		at := strings.Index(lower, "http://")
		if i := strings.Index(lower, "https://"); at < 0 || i >= 0 && i < at {
			at = i
		}
		word = strings.TrimRight(strings.TrimLeft(word, "(["), ".:!?)]'")
		switch {
		case at >= 0:
			add(HostOf(strings.TrimRight(lower[at:], ".:!?)]'")))
		case strings.Contains(word, "@") || strings.HasPrefix(word, "/"):
		default:
			host := HostOf("https://" + word)
			name, _, _ := strings.Cut(host, ":")
			if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(domains, name[i+1:]) {
				add(host)
			}
		}
	}
	return hosts
}

// between reports whether a rune stands between words, in any script.
func between(r rune) bool {
	return r <= ' ' || strings.ContainsRune("<>\"`|{},;、，。；：！？（）「」《》“”‘’", r)
}

// domains are those under which a bare name means a host.
var domains = []string{"com", "org", "net", "edu", "gov", "io", "dev", "cn", "de", "uk", "jp", "eu"}
