package app

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/model/textcalls"
)

// learnedModels stores in CODER_HOME what coder learned about models, by endpoint. It may be lost: coder
// then learns it again, at the price of a request. If it cannot be stored, it lasts for this process.
type learnedModels struct {
	path, endpoint string
	now            func() time.Time

	mu     sync.Mutex // guards the field below
	habits map[string]modelHabits
}

// modelHabits is an entry of the file.
type modelHabits struct {
	ToolMode textcalls.Mode `json:"tool_mode"`
	Seen     time.Time      `json:"seen"`
}

// learnedMaxAge is how long learned data is valid: servers change.
const learnedMaxAge = 30 * 24 * time.Hour

func (a *Models) newLearnedModels() *learnedModels {
	c := a.endpoint()
	l := &learnedModels{endpoint: c.Kind + " " + c.Address(), now: a.Env.Now}
	if !a.isScripted() {
		l.path = a.factsFile("models.json")
	}
	return l
}

// ToolMode returns how a model was seen to call tools.
func (l *learnedModels) ToolMode(model string) textcalls.Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.habits == nil {
		l.habits = l.readHabits()
	}
	if h := l.habits[l.endpoint+" "+model]; l.now().Sub(h.Seen) < learnedMaxAge {
		return h.ToolMode
	}
	return ""
}

// LearnToolMode stores how a model calls tools. Other processes' entries stay.
func (l *learnedModels) LearnToolMode(model string, m textcalls.Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.readHabits()
	maps.DeleteFunc(all, func(_ string, h modelHabits) bool { return l.now().Sub(h.Seen) >= learnedMaxAge })
	all[l.endpoint+" "+model] = modelHabits{ToolMode: m, Seen: l.now()}
	l.habits = all
	if l.path != "" {
		_ = atomicfile.WriteCache(l.path, jsonx.MustMarshal(all), 0o600) // it can be learned again
	}
}

// maxLearnedBytes limits the size of the file.
const maxLearnedBytes = 1 << 20

func (l *learnedModels) readHabits() map[string]modelHabits {
	all := make(map[string]modelHabits)
	if l.path == "" {
		return all
	}
	data, err := repofile.ReadOwn(l.path, maxLearnedBytes)
	if err != nil || json.Unmarshal(data, &all) != nil || all == nil {
		return make(map[string]modelHabits)
	}
	return all
}
