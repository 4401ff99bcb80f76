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

// learnt stores in CODER_HOME what coder learned about models, by endpoint. It may be lost: coder
// then learns it again, at the price of a request. If it cannot be stored, it lasts for this process.
type learnt struct {
	path, endpoint string
	now            func() time.Time

	mu    sync.Mutex // guards the field below
	known map[string]modelHabits
}

// modelHabits is an entry of the file.
type modelHabits struct {
	ToolMode textcalls.Mode `json:"tool_mode"`
	Seen     time.Time      `json:"seen"`
}

// learntFor is how long learned data is valid: servers change.
const learntFor = 30 * 24 * time.Hour

func (a *Models) learnt() *learnt {
	c := a.endpoint()
	l := &learnt{endpoint: c.Kind + " " + c.Address(), now: a.Env.Now}
	if !a.scripted() {
		l.path = a.remembers("models.json")
	}
	return l
}

// ToolMode returns how a model was seen to call tools.
func (l *learnt) ToolMode(model string) textcalls.Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = l.read()
	}
	if h := l.known[l.endpoint+" "+model]; l.now().Sub(h.Seen) < learntFor {
		return h.ToolMode
	}
	return ""
}

// LearnToolMode stores how a model calls tools. Other processes' entries stay.
func (l *learnt) LearnToolMode(model string, m textcalls.Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.read()
	maps.DeleteFunc(all, func(_ string, h modelHabits) bool { return l.now().Sub(h.Seen) >= learntFor })
	all[l.endpoint+" "+model] = modelHabits{ToolMode: m, Seen: l.now()}
	l.known = all
	if l.path != "" {
		_ = atomicfile.Cache(l.path, jsonx.Must(all), 0o600) // it can be learned again
	}
}

// maxLearnt limits the size of the file.
const maxLearnt = 1 << 20

func (l *learnt) read() map[string]modelHabits {
	all := make(map[string]modelHabits)
	if l.path == "" {
		return all
	}
	data, err := repofile.Own(l.path, maxLearnt)
	if err != nil || json.Unmarshal(data, &all) != nil || all == nil {
		return make(map[string]modelHabits)
	}
	return all
}
