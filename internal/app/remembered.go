package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// remembered is what servers said of themselves, by their address. It outlives the
// program: what was said last is the best guess until they are asked again. That it
// cannot be read or written is no harm: they are asked.
type remembered[V any] struct {
	mu    sync.Mutex // guards the fields below
	read  bool
	known map[string]V
}

// mostRemembered is how much of it is read, in bytes.
const mostRemembered = 1 << 20

// remembers is the file of that name where such things are kept; "" if nothing is to be.
func (a *App) remembers(name string) string {
	home, _ := a.homes()
	if home == "" || a.Options.Ephemeral {
		return ""
	}
	return filepath.Join(home, name)
}

// of is what is known of a key; zero if nothing is.
func (r *remembered[V]) of(file, key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load(file)
	return r.known[key]
}

// change remembers what do makes of what was known of a key, if do says so. Of more than
// most keys all are forgotten.
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

// load reads what earlier processes were told, once.
func (r *remembered[V]) load(file string) {
	if r.read {
		return
	}
	r.read = true
	if text, err := repofile.Own(file, mostRemembered); file != "" && err == nil {
		_ = json.Unmarshal(text, &r.known) // what is of another form is none of ours
	}
}
