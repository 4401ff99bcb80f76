package config

import (
	"encoding/json"
	"reflect"

	"coder/internal/core/hosts"
	"coder/internal/core/message"
)

// Network is what commands may reach: nothing, the listed hosts, or the whole network, [AllHosts].
type Network []string

// AllHosts is the unlimited network; in a file it is true.
var AllHosts = Network{"*"}

// IsUnlimited reports whether n is unlimited.
func (n Network) IsUnlimited() bool { return len(n) == 1 && n[0] == AllHosts[0] }

// HostPatterns returns the listed hosts; none for all or nothing.
func (n Network) HostPatterns() (list []hosts.Pattern) {
	for _, text := range n {
		if p, err := hosts.Parse(text); err == nil { // a star alone is not a pattern
			list = append(list, p)
		}
	}
	return list
}

// MarshalJSON writes the value as in a file.
func (n Network) MarshalJSON() ([]byte, error) {
	if len(n) == 0 || n.IsUnlimited() {
		return json.Marshal(n.IsUnlimited())
	}
	return json.Marshal([]string(n))
}

// checkHosts reports the first invalid pattern in a list.
func checkHosts(list []string) error {
	for _, text := range list {
		if _, err := hosts.Parse(text); err != nil {
			return message.Errorf("%q is not a host pattern: %w", shorten(text), err)
		}
	}
	return nil
}

// intersectNetworks returns what both values allow, and the hosts in the second that the first does not allow.
func intersectNetworks(was, want reflect.Value) (both reflect.Value, refused []string) {
	old, now := was.Interface().(Network), want.Interface().(Network)
	switch {
	case old.IsUnlimited():
		return want, nil
	case now.IsUnlimited():
		return was, []string{"every host"}
	}
	var shared Network
	for _, p := range now.HostPatterns() {
		found := false
		for _, q := range old.HostPatterns() {
			if both, ok := p.Intersect(q); ok {
				shared, found = append(shared, both.String()), true
			}
		}
		if !found {
			refused = append(refused, p.String())
		}
	}
	return reflect.ValueOf(shared), refused
}
