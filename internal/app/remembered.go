package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// remembered stores by address what servers reported about themselves. It outlives the process: the last
// report is the best guess until coder asks again. Failing to read or write it is harmless: coder asks.
type remembered[V any] struct {
	mu    sync.Mutex // guards the fields below
	read  bool
	known map[string]V
}

// mostRemembered limits the bytes read.
const mostRemembered = 1 << 20

// remembers returns the path of a file for such data, or "" if nothing may be saved.
func (a *Site) remembers(name string) string {
	home, _ := a.homes()
	if home == "" || a.Options.Ephemeral {
		return ""
	}
	return filepath.Join(home, name)
}

// of returns the value for a key, or zero.
func (r *remembered[V]) of(file, key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load(file)
	return r.known[key]
}

// change updates a key's value with do, and saves it if do
// returns true. With more than most keys, it forgets all others.
func (r *remembered[V]) change(file, key string, most int, do func(v *V) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load(file)
	v := r.known[key]
	if key == "" || !do(&v) {
		return
	}
	if _, has := r.known[key]; r.known == nil || !has && len(r.known) >= most {
		r.known = make(map[string]V)
	}
	r.known[key] = v
	text, err := json.MarshalIndent(r.known, "", "  ")
	if err != nil || file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = atomicfile.Cache(file, append(text, '\n'), 0o600)
}

// load reads earlier processes' values, once.
func (r *remembered[V]) load(file string) {
	if r.read {
		return
	}
	r.read = true
	if text, err := repofile.Own(file, mostRemembered); file != "" && err == nil {
		_ = json.Unmarshal(text, &r.known) // ignore an unknown format
	}
}
