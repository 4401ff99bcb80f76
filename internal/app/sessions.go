package app

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// lastSession is the session written to last, among those in which something
// was asked or decided if there are any.
func (h *house) lastSession() (string, error) {
	var last, idle newest
	for _, id := range slices.Concat(sessionsUnder(h.logs(), ""), sessionsUnder(h.snapshots(), ".json")) {
		t := h.logged(id) // a snapshot may be written long after the session was
		if t == 0 {
			t = h.projected(id)
		}
		if h.idle(id) {
			idle.see(id, t)
		} else {
			last.see(id, t)
		}
	}
	if id := cmp.Or(last.id, idle.id); id != "" {
		return id, nil
	}
	return "", inputf("there is no session to go on with in %s", h.root)
}

// newest is the latest of the sessions seen.
type newest struct {
	id   string
	when int64
}

func (n *newest) see(id string, when int64) {
	if when > n.when || when == n.when && when > 0 && id > n.id {
		n.id, n.when = id, when
	}
}

// maxIdle is the longest conversation that may hold nothing but look-ups.
const maxIdle = 4 << 20

// idle reports whether a session holds nothing but commands that looked
// something up.
func (h *house) idle(id string) bool {
	file := func(l event.Log) string { return filepath.Join(h.logs(), id, l.String()+".jsonl") }
	if info, err := os.Stat(file(event.Domain)); err == nil && info.Size() > 0 {
		return false
	}
	text, err := repofile.Below(h.data()).Read(filepath.Join("log", id, event.Conversation.String()+".jsonl"), maxIdle)
	if err != nil {
		return false // known by its snapshot alone, or long
	}
	for line := range bytes.Lines(text) {
		looked := bytes.Contains(line, []byte(`"type":"LocalAdded"`)) && !bytes.Contains(line, []byte(`"input":"/new`)) && !bytes.Contains(line, []byte(`"input":"/clear`))
		if !looked {
			return false
		}
	}
	return true
}

func sessionsUnder(dir, suffix string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && validSessionID(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *house) logs() string      { return filepath.Join(h.data(), "log") }
func (h *house) snapshots() string { return filepath.Join(h.data(), "sessions") }

// logged is when the logs of session id were last written to, or zero.
func (h *house) logged(id string) int64 {
	var last int64
	for _, l := range event.Logs {
		last = max(last, modified(filepath.Join(h.logs(), id, l.String()+".jsonl")))
	}
	return last
}

// projected is when the snapshot of session id was written, or zero.
func (h *house) projected(id string) int64 {
	return modified(filepath.Join(h.snapshots(), id+".json"))
}

// torn reports whether the snapshot of session id was not written to its end.
func (h *house) torn(id string) bool { return jsonl.OpenSessions(h.snapshots(), jsonl.Never).Torn(id) }

func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// mendLimit is how many of the newest sessions are looked at for snapshots
// that a crash left behind the logs.
const mendLimit = 20

// mendSnapshots projects the sessions whose process died before it could. No
// session is opened for that. It runs when the work is done, so that nobody waits for it.
func (h *house) mendSnapshots(ctx context.Context, sup *supervisor.Supervisor, current string) {
	if h.flags.ephemeral || ctx.Err() != nil {
		return
	}
	ids := sessionsUnder(h.logs(), "")
	slices.Sort(ids)
	slices.Reverse(ids)
	for _, id := range ids[:min(len(ids), mendLimit)] {
		if id == current || h.logged(id) <= h.projected(id) && !h.torn(id) {
			continue
		}
		_ = sup.Project(ctx, id) // what is beyond mending stays as it is: the logs are the truth
	}
}
