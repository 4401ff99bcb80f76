package hosts_test

import (
	"strings"
	"testing"

	"coder/internal/core/hosts"
)

func TestEveryHostHasOneSpelling(t *testing.T) {
	for spelt, want := range map[string]string{
		"example.org": "example.org", "EXAMPLE.Org.": "example.org", "a_b.example": "a_b.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"127.0.0.1": "127.0.0.1", "::1": "::1", "::ffff:10.0.0.1": "10.0.0.1", "2001:DB8::1": "2001:db8::1", "0:0:0:0:0:0:0:1": "::1",
		"localhost": "localhost", "1.example": "1.example", "0x7f.example": "0x7f.example",
		// What two programs could read in two ways is refused.
		"": "", ".": "", "..": "", "a..b": "", "example.org..": "", "2130706433": "", "127.1": "", "0x7f.0.0.1": "", "0x7f000001": "", "0177.0.0.1": "",
		"127.0.0.01": "", "1.2.3.4.5": "", "256.0.0.1": "", "127.0.0.1.": "", "127.0.0.0x1": "", "fe80::1%eth0": "", "fe80::1%25eth0": "", "bücher.example": "", "user@example.org": "",
		"example.org/x": "", "example.org#x": "", "example.org?x": "", "a b": "", "a\x00b": "", "a\tb": "", "a%2eb": "", "-a.example": "", "a-.example": "",
		"[::1]": "", "*.example.org": "", "1。2": "", "a\\b": "", strings.Repeat("a", 64): "", strings.Repeat("a.", 127) + "bb": "",
	} {
		if got, err := hosts.Canonical(spelt); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, want %q: %v", spelt, got, want, err)
		}
	}
}

func TestTargets(t *testing.T) {
	for address, want := range map[string]string{
		"example.org": "example.org", "example.org:443": "example.org", "example.org:80": "example.org", "Example.org.:22": "example.org:22",
		"[::1]:8080": "[::1]:8080", "::1": "::1", "[::ffff:127.0.0.1]:22": "127.0.0.1:22",
		"example.org:": "", "example.org:0": "", "example.org:65536": "", "example.org:+80": "", "example.org:080": "", "example.org:https": "",
		"user@example.org:80": "", "[::1": "", "[fe80::1%eth0]:80": "", ":80": "",
	} {
		got, err := hosts.NewTarget(address, "443")
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is %q, want %q: %v", address, got, want, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, matches, not string
	}{
		{"example.org", "example.org:80 example.org:443 EXAMPLE.ORG.:443", "example.org:22 example.org:8443 a.example.org:443 badexample.org:443 example.org.evil.example:443"},
		{"*.example.org", "a.example.org:443 a.b.example.org:80", "example.org:443 xexample.org:443 a.example.org:22"},
		{"example.org:22", "example.org:22", "example.org:443 example.org:80"},
		{"*.example.org:8443", "a.example.org:8443", "a.example.org:443"},
		{"10.0.0.1", "10.0.0.1:80 [::ffff:10.0.0.1]:443", "10.0.0.2:80 example.org:80"},
		{"[::1]:8080", "[::1]:8080", "[::1]:80"},
	} {
		p, err := hosts.Parse(c.pattern)
		if err != nil || p.String() != c.pattern {
			t.Errorf("%s: %v, %v", c.pattern, p, err)
			continue
		}
		for list, want := range map[string]bool{c.matches: true, c.not: false} {
			for address := range strings.FieldsSeq(list) {
				target, err := hosts.NewTarget(address, "")
				if err != nil || p.Matches(target) != want {
					t.Errorf("%s matches %s: %v, want %v (%v)", c.pattern, address, !want, want, err)
				}
			}
		}
	}
	for pattern, why := range map[string]string{
		"*": "use true", "https://example.org/x": `write "example.org"`, "a.*.org": "star", "*example.org": "star", "**.example.org": "star",
		"*.10.0.0.1": "subdomains", "example.org:x": "not a port", "": "name", "*.": "name", "a b": "not allowed", "10.1": "four decimal",
	} {
		if _, err := hosts.Parse(pattern); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %s", pattern, err, why)
		}
	}
}

func TestWhatTwoPatternsShare(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"example.org", "example.org", "example.org"}, {"example.org", "example.net", ""},
		{"*.example.org", "a.example.org", "a.example.org"}, {"*.example.org", "example.org", ""},
		{"*.example.org", "*.a.example.org", "*.a.example.org"}, {"*.example.org", "*.example.org", "*.example.org"}, {"*.example.org", "*.example.net", ""},
		{"example.org", "example.org:443", "example.org:443"}, {"example.org", "example.org:22", ""}, {"example.org:22", "example.org:23", ""},
		{"a.example.org", "*.example.org:443", "a.example.org:443"}, {"a.example.org:8080", "*.example.org", ""},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			p, _ := hosts.Parse(pair[0])
			q, _ := hosts.Parse(pair[1])
			got, ok := p.Intersect(q)
			if ok != (c.want != "") || ok && got.String() != c.want {
				t.Errorf("%s and %s: %v, want %s", pair[0], pair[1], got, c.want)
			}
		}
	}
}
