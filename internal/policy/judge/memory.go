package judge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/policy"
	"coder/internal/policy/rule"
)

// Memory saves what the user allowed "always", for this project and its sessions, in a folder of the
// user's own, so that a repository cannot bring such answers along.
type Memory struct {
	book    *rule.Book
	path    string
	root    string
	session string // the open session, or empty
	now     func() time.Time

	mu            sync.Mutex              // guards seen and others, and the file among this process's goroutines
	lastRead      fileStamp               // the file as last read
	otherSessions map[string][]rule.Grant // grants of the other sessions
}

// fileStamp identifies a state of a file.
type fileStamp struct {
	modTime time.Time
	size    int64
}

type projectMemory struct {
	Root     string                  `json:"root"`
	Grants   []rule.Grant            `json:"grants"`
	Sessions map[string][]rule.Grant `json:"sessions,omitempty"`
}

// maxSessions limits how many sessions have saved grants.
const maxSessions = 200

// OpenMemory gives j a memory below dir. session is the open session; if it is
// empty, session grants end with j. list are commands that the user's settings
// allow. The error says what could not be read; that needs approval again.
func (j *Judge) OpenMemory(dir, session string, list []string) (*Memory, error) {
	m := &Memory{book: j.book, root: j.o.Root, session: session, now: j.o.Now,
		path: filepath.Join(dir, projectFileName(j.o.Root))}
	if m.now == nil {
		m.now = func() time.Time { return time.Time{} }
	}
	j.book.Always, j.book.Session = rule.NewGrantList(), rule.NewGrantList()
	j.book.Always.Names = list
	j.memory = m
	return m, m.refresh()
}

// projectFileName returns the name of a project's file.
func projectFileName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:8]) + ".json"
}

// maxMemory limits the size of a project's file.
const maxMemory = 16 << 20

// refresh reads what another process remembered or revoked.
func (m *Memory) refresh() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var now fileStamp
	if info, err := os.Stat(m.path); err == nil {
		now = fileStamp{info.ModTime(), info.Size()}
	}
	if now == m.lastRead {
		return nil
	}
	m.lastRead = now
	var r projectMemory
	text, err := repofile.ReadOwn(m.path, maxMemory)
	if err == nil {
		if err = json.Unmarshal(text, &r); err != nil {
			err = message.Errorf("%s: %w", m.path, err)
		}
	}
	if err != nil || r.Root != m.root {
		r.Grants, r.Sessions = nil, nil
	}
	m.book.Always.Replace(r.Grants)
	if m.session != "" {
		m.book.Session.Replace(r.Sessions[m.session])
		delete(r.Sessions, m.session)
	}
	m.otherSessions = r.Sessions
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ClearSession deletes the grants of an earlier session with the same name.
func (m *Memory) ClearSession() error {
	if m.session == "" || len(m.book.Session.Grants()) == 0 {
		return nil
	}
	return m.update(func() error {
		m.book.Session.Replace(nil)
		return nil
	})
}

// Offers returns what would be remembered about a call, by scope.
func (m *Memory) Offers(c policy.Case) ([]policy.Offer, error) { return m.book.Offers(c) }

// Add remembers a call.
func (m *Memory) Add(_ context.Context, c policy.Case, s policy.Scope) error {
	add := func() error {
		_, err := m.book.Add(c, s, m.now())
		return err
	}
	if s != policy.ThisProject && m.session == "" {
		return add() // it applies until coder ends
	}
	return m.update(add)
}

// IsHostAllowed reports whether commands are always allowed to reach a host.
func (j *Judge) IsHostAllowed(host string) bool {
	return j.memory != nil && j.memory.refresh() == nil && j.book.IsHostAllowed(host)
}

// AllowHost remembers that commands may reach a host, and which command asked.
func (j *Judge) AllowHost(host string, s policy.Scope, why string) error {
	m := j.memory
	if m == nil {
		return nil // it applies until coder ends
	}
	allow := func() error {
		m.book.AllowHost(host, s, m.now(), why)
		return nil
	}
	if s != policy.ThisProject && m.session == "" {
		return allow()
	}
	return m.update(allow)
}

// update saves a change of the grants, on top of what other processes saved.
func (m *Memory) update(change func() error) error {
	return atomicfile.Update(m.path, 0o600, func() ([]byte, error) {
		m.mu.Lock()
		m.lastRead = fileStamp{size: -1} // read it in any case
		m.mu.Unlock()
		if err := m.refresh(); err != nil {
			return nil, err
		}
		if err := change(); err != nil {
			return nil, err
		}
		return m.encode()
	})
}

func (m *Memory) encode() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sessions := maps.Clone(m.otherSessions)
	if said := m.book.Session.Grants(); m.session != "" && len(said) > 0 {
		if sessions == nil {
			sessions = make(map[string][]rule.Grant)
		}
		sessions[m.session] = said
	}
	for _, old := range sessionsByAge(sessions)[:max(0, len(sessions)-maxSessions)] {
		delete(sessions, old)
	}
	text, err := json.MarshalIndent(projectMemory{m.root, m.book.Always.Grants(), sessions}, "", "  ")
	return append(text, '\n'), err
}

// sessionsByAge returns the sessions with grants, the one with the latest grant last.
func sessionsByAge(all map[string][]rule.Grant) []string {
	last := func(id string) (when time.Time) {
		for _, g := range all[id] {
			if g.Time.After(when) {
				when = g.Time
			}
		}
		return when
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(last(a).Compare(last(b)), strings.Compare(a, b))
	})
}

// CopyGrants copies a project's grants from before a time to another folder, for another path of the
// project. It omits session grants: rerunning the session makes them again.
func CopyGrants(dir, root, toDir, toRoot string, before time.Time) error {
	var r projectMemory
	text, err := repofile.ReadOwn(filepath.Join(dir, projectFileName(root)), maxMemory)
	if err != nil || json.Unmarshal(text, &r) != nil || r.Root != root {
		return nil // no grants, or none that count
	}
	r.Root, r.Sessions = toRoot, nil
	r.Grants = slices.DeleteFunc(r.Grants, func(g rule.Grant) bool { return !g.Time.Before(before) })
	for i, g := range r.Grants {
		if g.What == root || strings.HasPrefix(g.What, root+"/") {
			r.Grants[i].What = toRoot + strings.TrimPrefix(g.What, root)
		}
	}
	if text, err = json.Marshal(r); err != nil {
		return err
	}
	if err := os.MkdirAll(toDir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(toDir, projectFileName(toRoot)), text, 0o600)
}

// ListedGrant is a grant in a list.
type ListedGrant struct {
	Number int `json:"number"`
	rule.Grant
	Scope   policy.Scope `json:"scope"`
	Session string       `json:"session,omitempty"` // the session it applies in
}

// List returns all grants of the project, then those of the
// session or, without an open session, of every session.
func (m *Memory) List() ([]ListedGrant, error) {
	if err := m.refresh(); err != nil {
		return nil, err
	}
	all := []ListedGrant{}
	for _, g := range m.book.Always.Grants() {
		all = append(all, ListedGrant{len(all) + 1, g, policy.ThisProject, ""})
	}
	for _, g := range m.book.Session.Grants() {
		all = append(all, ListedGrant{len(all) + 1, g, policy.ThisSession, m.session})
	}
	if m.session != "" {
		return all, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range sessionsByAge(m.otherSessions) {
		for _, g := range m.otherSessions[id] {
			all = append(all, ListedGrant{len(all) + 1, g, policy.ThisSession, id})
		}
	}
	return all, nil
}

// Revoke deletes the grants that which names, a number in the list or "all", and returns them.
func (m *Memory) Revoke(which string) (all []ListedGrant, err error) {
	err = m.update(func() (err error) {
		if all, err = m.List(); err != nil {
			return err
		}
		if which = strings.TrimSpace(which); which != "all" {
			n, err := strconv.Atoi(which)
			if err != nil || n < 1 || n > len(all) {
				return message.Errorf("no number %s in the list; it ends at %d", strconv.Quote(which), len(all))
			}
			all = all[n-1 : n]
		}
		for _, g := range all {
			switch {
			case g.Scope == policy.ThisProject:
				m.book.Always.Revoke(g.Grant)
			case g.Session == m.session:
				m.book.Session.Revoke(g.Grant)
			default:
				m.deleteOther(g)
			}
		}
		return nil
	})
	return all, err
}

// deleteOther deletes a grant of a session that is not open here.
func (m *Memory) deleteOther(g ListedGrant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := rule.NewGrantList(m.otherSessions[g.Session]...)
	left.Revoke(g.Grant)
	if m.otherSessions[g.Session] = left.Grants(); len(m.otherSessions[g.Session]) == 0 {
		delete(m.otherSessions, g.Session)
	}
}

// rows lists the grants with their time and reason.
func (m *Memory) rows() (rows [][]display.Cell) {
	all, err := m.List()
	if err != nil {
		return nil
	}
	for _, g := range all {
		what := fmt.Sprintf("%d. always: %s", g.Number, g.Grant)
		if g.Scope == policy.ThisSession {
			what = fmt.Sprintf("%d. this session: %s", g.Number, g.Grant)
		}
		since := fmt.Sprintf("since %s, for: %s", g.Time.Local().Format("2006-01-02 15:04"), g.Why)
		rows = append(rows, display.TextCells(what, policy.Allow.String(), since))
	}
	return rows
}
