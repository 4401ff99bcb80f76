package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"coder/internal/core/hosts"
)

// Network is what commands may reach: nothing, the hosts that it lists, or the
// whole network, [AllHosts].
type Network []string

// AllHosts is the network without a limit; in a file it is true.
var AllHosts = Network{"*"}

// All reports whether there is no limit.
func (n Network) All() bool { return len(n) == 1 && n[0] == AllHosts[0] }

// Hosts are those that the list names; none where it is all or nothing.
func (n Network) Hosts() (list []hosts.Pattern) {
	for _, text := range n {
		if p, err := hosts.Parse(text); err == nil { // a star alone is no pattern
			list = append(list, p)
		}
	}
	return list
}

// MarshalJSON writes the value as a file has it.
func (n Network) MarshalJSON() ([]byte, error) {
	if len(n) == 0 || n.All() {
		return json.Marshal(n.All())
	}
	return json.Marshal([]string(n))
}

// checkHosts reports the first bad pattern of a list.
func checkHosts(list []string) error {
	for _, text := range list {
		if _, err := hosts.Parse(text); err != nil {
			return fmt.Errorf("%q is not a host pattern: %w", brief(text), err)
		}
	}
	return nil
}

// narrower is what both values allow, and what of the second the first does not.
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
