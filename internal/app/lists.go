package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/config"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/model/transport"
)

// lists are the models that endpoints last said they have. They outlive the
// program, so that models can be offered where nobody may be asked.
type lists struct {
	mu    sync.Mutex // guards the fields below
	read  bool
	known map[string][]string // by address
}

// mostLists is how many are remembered, and mostOfLists how many bytes.
const (
	mostLists   = 50
	mostOfLists = 1 << 20
)

// listsFile is where lists are remembered; "" if nothing is to be kept.
func (a *App) listsFile() string {
	if a.Home == "" || a.Options.Ephemeral {
		return ""
	}
	return filepath.Join(a.Home, "lists.json")
}

// lastListed are the models that an endpoint last said it has.
func (a *App) lastListed(c config.Provider) []string {
	a.lists.mu.Lock()
	defer a.lists.mu.Unlock()
	a.lists.load(a.listsFile())
	return slices.Clone(a.lists.known[address(c)])
}

// keepList remembers what an endpoint says it has. That it cannot be written is no
// harm: it is asked again.
func (a *App) keepList(c config.Provider, models []transport.Model) {
	var names []string
	for _, m := range models[:min(len(models), mostModels)] {
		names = append(names, m.Name)
	}
	file := a.listsFile()
	l := &a.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load(file)
	if len(names) == 0 || slices.Equal(l.known[address(c)], names) {
		return
	}
	if l.known == nil || len(l.known) >= mostLists {
		l.known = make(map[string][]string)
	}
	l.known[address(c)] = names
	text, err := json.MarshalIndent(l.known, "", "  ")
	if err != nil || file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = atomicfile.Write(file, append(text, '\n'), 0o600)
}

// load reads what earlier processes were told, once. What cannot be read is asked
// for again.
func (l *lists) load(file string) {
	if l.read {
		return
	}
	l.read = true
	if text, err := repofile.Own(file, mostOfLists); file != "" && err == nil {
		_ = json.Unmarshal(text, &l.known) // what is of another form is none of ours
	}
}

// address is where an endpoint is, without what may be secret in it.
func address(c config.Provider) string { return strings.TrimSpace(modelAt(c.BaseURL, "")) }
