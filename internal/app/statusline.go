package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/record/gitstate"
)

// SessionState is the state of a session and its workspace, for the status line.
type SessionState struct {
	Branch    string // "" outside a repository
	Dirty     bool   // tracked files differ from the commit
	Percent   int    // used percentage of the model's window
	Cost      float64
	Jobs      int // background commands
	Questions int // open questions in the workspace's other sessions
}

const (
	statusTimeout  = 2 * time.Second
	maxStatusBytes = 4 << 10
)

// SessionState returns the state of the session in use, with used tokens in its context, without the branch.
func (a *Session) SessionState(used int) SessionState {
	s := SessionState{Jobs: len(a.RunningJobs())}
	if limit := a.maxRequestTokens(); limit > 0 {
		s.Percent = min(used*100/limit, 100)
	}
	spent, _ := a.meter.Spent()
	s.Cost = spent.Cost
	for _, p := range a.Store().Inbox().ListWaiting() {
		if p != (inbox.Origin{Root: a.Root, Session: a.id}) && p.Root == a.Root {
			s.Questions++
		}
	}
	return s
}

// Branch returns the branch that is checked out, or the commit, and whether tracked files differ from it.
func (a *Site) Branch(ctx context.Context) (name string, dirty bool) {
	if _, ok := gitstate.Find(a.Root); !ok {
		return "", false
	}
	ctx, stop := context.WithTimeout(ctx, statusTimeout)
	defer stop()
	git, err := a.Launcher().Git(ctx, a.Root)
	if err != nil {
		return "", false
	}
	out, err := git.Command(ctx, "status", "--porcelain=v2", "--branch", "--untracked-files=no").Output()
	if err != nil {
		return "", false
	}
	var commit string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		head, isHead := strings.CutPrefix(line, "# branch.head ")
		id, isID := strings.CutPrefix(line, "# branch.oid ")
		switch {
		case isHead:
			name = head
		case isID:
			commit = id
		case !strings.HasPrefix(line, "#"):
			dirty = true
		}
	}
	if name == "(detached)" {
		name = commit[:min(len(commit), 8)]
	}
	return name, dirty
}

// RunStatusLine returns the line that your own command (ui.statusline) prints.
// The command runs outside the workspace, without the keys that commands do
// not get, and reads other agents' JSON format on standard input.
func (a *Models) RunStatusLine(ctx context.Context, session, mode string, s SessionState) (string, error) {
	ctx, stop := context.WithTimeout(ctx, statusTimeout)
	defer stop()
	type object = map[string]any
	words := a.Config.UI.Statusline
	cmd := a.Launcher().Command(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.WaitDelay = string(filepath.Separator), time.Second
	cmd.Stdin = bytes.NewReader(jsonx.MustMarshal(object{
		"hook_event_name": "Status", "session_id": session, "transcript_path": filepath.Join(a.dataDir(), "log", session,
			"conversation.jsonl"),
		"cwd": a.Root, "version": Version, "mode": mode, "background_jobs": s.Jobs, "questions": s.Questions,
		"model":          object{"id": a.ModelName(), "display_name": a.ModelName()},
		"workspace":      object{"current_dir": a.Root, "project_dir": a.Project, "branch": s.Branch, "dirty": s.Dirty},
		"cost":           object{"total_cost_usd": s.Cost},
		"context_window": object{"used_percentage": s.Percent, "context_window_size": a.maxRequestTokens()},
	}))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	text, _ := io.ReadAll(io.LimitReader(out, maxStatusBytes)) // use what arrived in time
	if len(text) == maxStatusBytes {
		stop()
	}
	if err := cmd.Wait(); err != nil && len(text) < maxStatusBytes {
		return "", errors.Join(err, context.Cause(ctx))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	// the line has its own style
	return sanitize.Line(regexp.MustCompile("\x1b\\[[0-9;:]*m").ReplaceAllString(line, ""), 200), nil
}
