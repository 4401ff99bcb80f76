package web

import (
	"net/netip"
	"testing"

	"coder/internal/host/egress"
)

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
		if got := o.IsAllowed(tc.host, tc.port); got != tc.want {
			t.Errorf("Allows(%s, %s) = %v", tc.host, tc.port, got)
		}
	}
	if (Options{}).IsAllowed("localhost", "80") {
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
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && egress.AddressClass(a) != "" {
			t.Errorf("%q leads to %v", s, a)
		}
	})
}
