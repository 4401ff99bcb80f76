package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/authored/notes"
	"coder/internal/authored/rulefile"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
	"coder/internal/host/patch"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/policy/trust"
	"coder/internal/record/undo"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/memory"
)

// memoryIntro precedes the memory's index.
const memoryIntro = "What earlier sessions had to remember. […] marks an entry with more text, which the memory tool reads.\n\n"

// memoryEntries returns the entries in a trusted project's memory and in the user's own.
func (a *Authored) memoryEntries() ([]notes.Entry, []frontmatter.Warning) {
	var project, own frontmatter.Root
	if a.Trusted == trust.Trusted {
		project = frontmatter.Root{Path: memory.Dir, Files: a.projectFiles(a.Root).Sub(memory.Dir)}
	}
	if dir := a.userMemoryDir(); dir != "" {
		own = frontmatter.Root{Path: filepath.ToSlash(dir), Files: repofile.OwnDir(dir)}
	}
	return notes.List(project, own)
}

// memoryDir is the folder in CODER_HOME with the user's own entries.
const memoryDir = "memory"

// userMemoryDir returns the folder of the user's own entries, or "" without a home folder.
func (a *Authored) userMemoryDir() string {
	home, _ := a.userDirs()
	if home == "" {
		return ""
	}
	return filepath.Join(home, memoryDir)
}

// memoryRules returns the memory's index as a rule. It reads
// the memory once, and again after the user changes it.
func (a *Authored) memoryRules() []rulefile.Rule {
	if text := a.memoryIndex.Load(); text != nil {
		return memoryIndexRules(*text)
	}
	entries, bad := a.memoryEntries()
	for _, w := range bad {
		a.warn(fmt.Sprintf("memory %s", w))
	}
	text := notes.FormatIndex(entries)
	a.memoryIndex.Store(&text)
	return memoryIndexRules(text)
}

func memoryIndexRules(index string) []rulefile.Rule {
	if index == "" {
		return nil
	}
	return []rulefile.Rule{{Path: memory.Name, Text: memoryIntro + index}}
}

// memoryToolOptions returns the memory tool's options.
func (a *Workspace) memoryToolOptions(ws *workspace.Workspace) memory.Options {
	o := memory.Options{
		Workspace: ws, Entries: func() []notes.Entry { all, _ := a.memoryEntries(); return all },
		UserDir: a.userMemoryDir(),
		Secret:  func(text string) bool { return secret.HasMask(text) || a.newConcealer().Text(text) != text },
	}
	if a.Trusted != trust.Trusted {
		o.ReadOnlyReason = "the memory of this folder is not used: the user does not trust the folder"
	}
	return o
}

// isMemoryUseful reports whether the memory is useful to the model: the
// user can approve entries, or an entry has more text than its line.
func (a *Authored) isMemoryUseful() bool {
	if a.Options.HasUser && a.Trusted == trust.Trusted {
		return true
	}
	rules := a.memoryRules()
	return len(rules) > 0 && strings.Contains(strings.TrimPrefix(rules[0].Text, memoryIntro), "[…]")
}

// withMemoryApproval returns p, but asks about every call that would write
// a memory entry, in every mode: only the user decides what to remember.
func (a *Authored) withMemoryApproval(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		if err == nil && o.Verdict != policy.Deny && a.isMemoryWrite(c.Plan) {
			why := policy.Reason{By: "memory", Text: "only you decide what is remembered"}
			if o.Verdict == policy.Allow {
				o.Reasons, o.Unasked = nil, event.AutoAllowance("")
			}
			o.Verdict, o.Reasons = policy.Ask, append(slices.Clip(o.Reasons), why)
		}
		return o, err
	})
}

// isMemoryWrite reports whether a call writes to a memory folder.
func (a *Authored) isMemoryWrite(plan tool.Plan) bool {
	inside := func(file string) bool {
		at := a.resolvePath(file)
		for _, dir := range []string{filepath.Join(a.Root, memory.Dir), a.userMemoryDir()} {
			rel, err := filepath.Rel(strings.ToLower(dir), strings.ToLower(at))
			if dir != "" && err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
		return false
	}
	line, _ := plan.Line.(risk.Report)
	return slices.ContainsFunc(line.Writes, inside) ||
		slices.ContainsFunc(plan.Effects, func(e tool.Effect) bool { return e.Kind == tool.Write && inside(e.Target) })
}

// memoryCommands is the memory for commands.
type memoryCommands struct{ *Session }

// Entries returns the memory's entries, and warnings about other files.
func (m memoryCommands) Entries() ([]notes.Entry, []frontmatter.Warning) { return m.memoryEntries() }

// Remember writes an entry that the user typed, for the project or for all projects.
func (m memoryCommands) Remember(ctx context.Context, c undo.Request, text string, own bool) (display.Diff, error) {
	o := m.memoryToolOptions(m.kit.project.ws)
	if !own {
		if o.ReadOnlyReason != "" {
			return display.Diff{},
				errors.New("coder does not use the memory of a folder that you do not trust: /trust trusts the folder, /remember --user TEXT saves the note for all projects")
		}
		change, err := o.PlanChange("", text)
		if err != nil {
			return display.Diff{}, err
		}
		return change.Diff(), m.write(ctx, c, change)
	}
	dir := m.userMemoryDir()
	if dir == "" {
		return display.Diff{}, errors.New("nothing is saved without a home folder")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return display.Diff{}, err
	}
	release, err := atomicfile.Lock(dir) // no other process takes the name meanwhile
	if err != nil {
		return display.Diff{}, err
	}
	defer release()
	name, err := o.Check("", text)
	if err != nil {
		return display.Diff{}, err
	}
	at := filepath.Join(dir, name+".md")
	change := memory.Change{Name: name, Path: at, New: []byte(strings.TrimSpace(text) + "\n")}
	err = atomicfile.WriteLocked(at, change.New, 0o600)
	m.memoryIndex.Store(nil)
	return change.Diff(), err
}

// maxShownEntry limits the bytes of a removed file that are shown.
const maxShownEntry = 64 << 10

// Forget removes an entry.
func (m memoryCommands) Forget(ctx context.Context, c undo.Request, e notes.Entry) (diff display.Diff, err error) {
	defer m.memoryIndex.Store(nil)
	if e.FromUser {
		at := filepath.FromSlash(e.Path)
		text, err := repofile.ReadOwn(at, maxShownEntry) // all that goes is shown
		if err != nil {
			return diff, err
		}
		diff.Unified, diff.Added, diff.Deleted = patch.Unified(e.Path, text, nil)
		return diff, errors.Join(os.Remove(at), disk.SyncDir(filepath.Dir(at)))
	}
	change := memory.Change{Name: e.Name, Path: e.Path}
	if change.Old, err = m.memoryToolOptions(m.kit.project.ws).ReadFile(e.Path); err != nil {
		return diff, err
	}
	return change.Diff(), m.write(ctx, c, change)
}

// write changes the project's memory. It records the change as
// a call, so that undo reverts it and why explains it.
func (m memoryCommands) write(ctx context.Context, c undo.Request, change memory.Change) (err error) {
	defer m.memoryIndex.Store(nil)
	id, now := c.NewID(), m.Env.Now
	effects := []tool.Effect{{Kind: tool.Write, Target: change.Path}}
	var kept tool.Snapshot
	if m.kit.backup != nil {
		if kept, err = m.kit.backup.SaveOriginals(ctx, effects); err != nil {
			return err
		}
	}
	asked := event.ToolCallRequested{
		CallID: id, Tool: memory.Name, Author: event.ActorUser, TaskID: id, Timestamp: now().UnixMilli(),
		Verdict:   event.VerdictAllowed,
		DecidedBy: event.ActorUser, Effects: effects, Before: kept.Before,
		Input: jsonx.MustMarshal(map[string]string{"name": change.Name, "text": string(change.New)}),
	}
	if err := c.Emit(ctx, asked); err != nil {
		return err
	}
	if change.New == nil {
		err = m.kit.project.ws.Remove(change.Path, workspace.AcceptContent(change.Old))
	} else {
		err = m.kit.project.ws.Swap(change.Path, change.Old, change.New)
	}
	done := event.ToolCallCompleted{CallID: id, Tool: memory.Name, Author: event.ActorUser, TaskID: id,
		Timestamp: now().UnixMilli(), IsError: err != nil}
	done.Output = jsonx.MustMarshal(map[string]bool{"ok": err == nil})
	if m.kit.backup != nil {
		changes, lost := m.kit.backup.ChangesSince(ctx, kept)
		done.Changes, err = changes, errors.Join(err, lost)
	}
	return errors.Join(err, c.Emit(context.WithoutCancel(ctx), done))
}

// Edit opens an entry in the user's editor.
func (m memoryCommands) Edit(ctx context.Context, e notes.Entry) error {
	at := m.resolvePath(filepath.FromSlash(e.Path))
	lend := tool.LenderOf(tool.WithTerminal(ctx))
	if lend == nil {
		return message.Errorf("an editor needs a terminal; the file is %s", at)
	}
	defer m.memoryIndex.Store(nil)
	words := strings.Fields(cmp.Or(m.Env.Getenv("VISUAL"), m.Env.Getenv("EDITOR"), "vi"))
	return lend(ctx, func(terminal *os.File) error {
		cmd := m.Launcher().Command(ctx, words[0], append(words[1:], at)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = terminal, terminal, terminal, m.Root
		return cmd.Run()
	})
}

var _ slash.Memory = memoryCommands{}
