package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"coder/internal/core/hosts"
)

// Network is what commands may reach: nothing, the listed hosts, or the whole network, [AllHosts].
type Network []string

// AllHosts is the unlimited network; in a file it is true.
var AllHosts = Network{"*"}

// All reports whether n is unlimited.
func (n Network) All() bool { return len(n) == 1 && n[0] == AllHosts[0] }

// Hosts returns the listed hosts; none for all or nothing.
func (n Network) Hosts() (list []hosts.Pattern) {
	for _, text := range n {
		if p, err := hosts.Parse(text); err == nil { // a star alone is not a pattern
			list = append(list, p)
		}
	}
	return list
}

// MarshalJSON writes the value as in a file.
func (n Network) MarshalJSON() ([]byte, error) {
	if len(n) == 0 || n.All() {
		return json.Marshal(n.All())
	}
	return json.Marshal([]string(n))
}

// checkHosts reports the first invalid pattern in a list.
func checkHosts(list []string) error {
	for _, text := range list {
		if _, err := hosts.Parse(text); err != nil {
			return fmt.Errorf("%q is not a host pattern: %w", brief(text), err)
		}
	}
	return nil
}

// narrower returns what both values allow, and the hosts in the second that the first does not allow.
func narrower(was, want reflect.Value) (both reflect.Value, refused []string) {
	old, now := was.Interface().(Network), want.Interface().(Network)
	switch {
	case old.All():
		return want, nil
	case now.All():
		return was, []string{"every host"}
	}
	var shared Network
	for _, p := range now.Hosts() {
		found := false
		for _, q := range old.Hosts() {
			if both, ok := p.And(q); ok {
				shared, found = append(shared, both.String()), true
			}
		}
		if !found {
			refused = append(refused, p.String())
		}
	}
	return reflect.ValueOf(shared), refused
}
