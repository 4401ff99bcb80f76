package egress_test

import (
	"net/netip"
	"testing"

	"coder/internal/host/egress"
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
		if got := egress.AddressClass(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if egress.AddressClass(netip.Addr{}) == "" {
		t.Error("no address at all is public")
	}
}
