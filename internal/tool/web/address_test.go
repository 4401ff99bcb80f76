package web

import (
	"net/netip"
	"testing"
)

func TestWhichAddressesArePublic(t *testing.T) {
	for address, want := range map[string]string{
		"8.8.8.8": "", "93.184.216.34": "", "1.1.1.1": "", "172.15.255.255": "", "172.32.0.0": "", "100.63.255.255": "", "100.128.0.0": "",
		"2606:4700::1111": "", "2a00:1450:4001::8a": "",
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fc00::1": "private", "fd12:3456::1": "private",
		"169.254.169.254": "link-local", "169.254.0.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"100.64.0.1": "reserved", "100.127.255.255": "reserved", "0.1.2.3": "reserved", "192.0.0.8": "reserved", "198.18.0.1": "reserved",
		"192.0.2.1": "reserved", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"0.0.0.0": "unspecified", "::": "unspecified",
		"224.0.0.1": "multicast", "239.255.255.250": "multicast", "ff02::1": "multicast", "ff0e::1": "multicast",
		"::ffff:127.0.0.1": "loopback", "::ffff:10.0.0.1": "private", "::ffff:169.254.169.254": "link-local", "::ffff:8.8.8.8": "",
		"64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "link-local", "64:ff9b::808:808": "", "64:ff9b:1::808:808": "reserved",
		"2002:7f00:1::": "loopback", "2002:a00:1::1": "private", "2002:808:808::1": "",
		"::127.0.0.1": "reserved", "::8.8.8.8": "reserved", "fec0::1": "reserved", "2001:db8::1": "reserved", "2001::1": "reserved", "100::1": "reserved",
		"4000::1": "reserved",
	} {
		if got := why(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if why(netip.Addr{}) == "" {
		t.Error("no address at all is public")
	}
}

func TestAllowedHosts(t *testing.T) {
	o := Options{AllowHosts: []string{"good.com", "localhost:8080", "*.corp.example", "[::1]:80", "*"}}
	for _, tc := range []struct {
		host, port string
		want       bool
	}{
		{"good.com", "80", true}, {"GOOD.com.", "443", true}, {"good.com.evil", "80", false}, {"evilgood.com", "80", false}, {"x.good.com", "80", false},
		{"localhost", "8080", true}, {"localhost", "80", false},
		{"a.corp.example", "80", true}, {"a.b.corp.example", "80", true}, {"corp.example", "80", false}, {"xcorp.example", "80", false},
		{"::1", "80", true}, {"::1", "81", false}, {"anything", "80", false},
	} {
		if got := o.allowed(tc.host, tc.port); got != tc.want {
			t.Errorf("allowed(%s, %s) = %v", tc.host, tc.port, got)
		}
	}
	if (Options{}).allowed("localhost", "80") {
		t.Error("the zero Options allow a host")
	}
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"http://127.0.0.1/", "http://localhost./", "http://[::1]:80", "http://a@b/", "https://x/\x00", "http:x", "http:///x", "//x", "HTTP://X:99999/", "http://good.com\\@evil", "http://[fe80::1%25eth0]/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := Options{}.parseURL(s)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" || u.Fragment != "" {
			t.Errorf("%q became %v", s, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && why(a) != "" {
			t.Errorf("%q leads to %v", s, a)
		}
	})
}
