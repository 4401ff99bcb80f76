package bundle

import (
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/paths"
)

// Location is a session's id and its paths on a machine.
type Location struct{ Session, Root, Home string }

// Relocate returns the session of the bundle for another place: with another id and rewritten paths.
func (b Bundle) Relocate(to Location) Bundle {
	m := make(paths.Map)
	for _, p := range [][2]string{{".coder/runs/" + b.Session, ".coder/runs/" + to.Session}, {b.Home, to.Home},
		{b.Root, to.Root}} {
		if from, into := strings.TrimRight(p[0], "/"), strings.TrimRight(p[1], "/"); into != "" {
			m[from] = into
		}
	}
	records := make([]event.Record, len(b.Records))
	for i, r := range b.Records {
		r.Session, r.Event = to.Session, event.Mask(r.Event, m)
		records[i] = r
	}
	b.Session, b.Root, b.Home, b.Records = to.Session, to.Root, to.Home, records
	return b
}
