package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// serverFacts stores by address what servers reported about themselves. It outlives the process: the last
// report is the best guess until coder asks again. Failing to read or write it is harmless: coder asks.
type serverFacts[V any] struct {
	mu     sync.Mutex // guards the fields below
	loaded bool
	facts  map[string]V
}

// maxFactsBytes limits the bytes read.
const maxFactsBytes = 1 << 20

// factsFile returns the path of a file for such data, or "" if nothing may be saved.
func (a *Site) factsFile(name string) string {
	home, _ := a.userDirs()
	if home == "" || a.Options.Ephemeral {
		return ""
	}
	return filepath.Join(home, name)
}

// get returns the value for a key, or zero.
func (r *serverFacts[V]) get(file, key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loadForeign(file)
	return r.facts[key]
}

// update updates a key's value with do, and saves it if do
// returns true. With more than most keys, it forgets all others.
func (r *serverFacts[V]) update(file, key string, most int, do func(v *V) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loadForeign(file)
	v := r.facts[key]
	if key == "" || !do(&v) {
		return
	}
	if _, has := r.facts[key]; r.facts == nil || !has && len(r.facts) >= most {
		r.facts = make(map[string]V)
	}
	r.facts[key] = v
	text, err := json.MarshalIndent(r.facts, "", "  ")
	if err != nil || file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = atomicfile.WriteCache(file, append(text, '\n'), 0o600)
}

// loadForeign reads earlier processes' values, once.
func (r *serverFacts[V]) loadForeign(file string) {
	if r.loaded {
		return
	}
	r.loaded = true
	if text, err := repofile.ReadOwn(file, maxFactsBytes); file != "" && err == nil {
		_ = json.Unmarshal(text, &r.facts) // ignore an unknown format
	}
}
