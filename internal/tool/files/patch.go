package files

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed patch.md
var patchDoc string

type patchArgs struct {
	Path   string        `json:"path,omitzero" hidden:"yes" also:"file_path file target_file"`
	Patch  string        `json:"patch" also:"diff input patch_text patch_content"`
	DryRun bool          `json:"dry_run,omitzero" also:"check preview" hidden:"yes" doc:"only check"`
	Only   hunkSelection `json:"only_hunks,omitzero" hidden:"yes"`
}

// Patch returns the tool that changes several files at once.
func Patch(ws *workspace.Workspace, seen *SeenFiles) tool.Tool {
	return tool.Func[patchArgs]{
		Name: "patch", Doc: patchDoc, Aliases: toolAliases("", "", "apply_patch", "applypatch", "apply_diff"),
		PlanRun: func(ctx context.Context, a patchArgs) (tool.Plan, tool.Run, error) {
			set := &changeSet{ws: ws, seen: seen, dryRun: a.DryRun, modes: make(map[string]fs.FileMode)}
			if err := set.compute(a); err != nil {
				if missing := patch.NoFileError(""); errors.As(err, &missing) {
					err = ws.AddSuggestion(ctx, string(missing), err)
				}
				return tool.Plan{Title: set.title}, nil, err
			}
			return set.plan(), set.apply, nil
		},
	}
}

// compute computes what the patch would do to the files in their current state.
func (s *changeSet) compute(a patchArgs) error {
	p, err := patch.ParseFor(a.Path, a.Patch)
	if err != nil {
		return err
	}
	s.title = namesTitle(p.Names())
	if err := s.resolveNames(p); err != nil {
		return err
	}
	before, err := s.loadFiles(p)
	if err != nil {
		return err
	}
	changes, err := p.Apply(before)
	if err != nil {
		return err
	}
	for i, c := range changes {
		if old, new := string(c.Old), string(c.New); c.Old != nil && c.New != nil {
			// The file keeps its line ends, unless nothing else changes.
			if e := detectEnding(old); e != mixedEnds && strings.ContainsAny(old, "\r\n") &&
				e.normalize(old) != e.normalize(new) {
				changes[i].New = []byte(e.convert(e.normalize(new)))
			}
		}
	}
	s.hunks = s.countAllHunks(changes)
	if a.Only != nil {
		if changes, err = s.selectHunks(changes, a.Only); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := s.addChange(c); err != nil {
			return err
		}
	}
	return nil
}

// newMode returns the new mode of a change's file, if it differs from the current one.
func (s *changeSet) newMode(c patch.Change) patch.Mode {
	was := s.modes[cmp.Or(c.From, c.Path)].Perm()
	if c.New == nil || c.Old != nil && withExecute(was, c.Mode) == was {
		return patch.ModeUnspecified
	}
	return c.Mode
}

// countHunks returns how many parts of a change can be applied separately:
// the hunks of a file that keeps its name and mode, else 1.
func (s *changeSet) countHunks(c patch.Change) int {
	if c.From != "" || c.Old != nil && s.newMode(c) != patch.ModeUnspecified {
		return 1
	}
	return patch.CountHunks(c.Old, c.New)
}

// countAllHunks counts the hunks of all changes; 0 if they cannot be separated because a file is changed twice.
func (s *changeSet) countAllHunks(changes []patch.Change) (n int) {
	names := make(map[string]bool)
	for _, c := range changes {
		if names[c.Path] || c.From != "" && names[c.From] {
			return 0
		}
		names[c.Path], names[c.From] = true, c.From != ""
		n += s.countHunks(c)
	}
	return n
}

// selectHunks returns the changes with only some of their hunks.
func (s *changeSet) selectHunks(changes []patch.Change, which hunkSelection) (some []patch.Change, err error) {
	if err := which.check(s.hunks); err != nil {
		return nil, err
	}
	before := 0 // hunks of earlier files
	for _, c := range changes {
		n := s.countHunks(c)
		take := func(hunk int) bool { return which.includes(before + hunk) }
		switch {
		case n > 1:
			c.New = patch.ApplyHunks(c.Old, c.New, take)
			if !bytes.Equal(c.New, c.Old) {
				some = append(some, c)
			}
		case n == 1 && take(1):
			some = append(some, c)
		}
		before += n
	}
	s.hunkText, s.hunks = which.describe(s.hunks), 0
	return some, nil
}

// resolveNames gives every file in the patch its real name, so that two names of one file become one. A
// deletion means the name itself: for a link, never its target.
func (s *changeSet) resolveNames(p patch.Patch) (err error) {
	deleted := make(map[string]bool) // links
	for i := range p {
		moves := p[i].Old != "" && p[i].New != "" && p[i].Old != p[i].New
		for _, name := range []*string{&p[i].Old, &p[i].New} {
			if *name == "" {
				continue
			}
			itself, isLink, err := resolveFolder(s.ws, *name)
			switch {
			case err != nil:
				return err
			case deleted[itself]: // earlier in this patch
				*name = itself
				continue
			case isLink && p[i].New == "":
				*name, p[i].Whole, deleted[itself] = itself, true, true
				continue
			case isLink && moves:
				return message.Errorf("%s is a link; a patch cannot move it. Name the file it points to, or use a command", itself)
			}
			if *name, err = s.ws.Locate(*name); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolveFolder returns a name with links resolved in its folder only, and whether it is a link itself.
func resolveFolder(ws *workspace.Workspace, name string) (at string, isLink bool, err error) {
	if name, err = ws.Resolve(name); err != nil {
		return "", false, err
	}
	up, err := ws.Locate(path.Dir(name))
	if err != nil {
		return "", false, err
	}
	at = path.Join(up, path.Base(name))
	info, err := ws.Lstat(at)
	return at, err == nil && info.Mode()&fs.ModeSymlink != 0, nil
}

// loadFiles reads the existing files of the patch. For a link to be deleted it reads the target's path.
func (s *changeSet) loadFiles(p patch.Patch) (map[string][]byte, error) {
	before := make(map[string][]byte)
	for _, name := range p.Names() {
		b, info, err := loadOrLink(s.ws, name)
		if err != nil {
			return nil, err
		}
		if info == nil {
			continue
		}
		before[name], s.modes[name] = b, info.Mode()
		if info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		if err := checkText(name, b); err != nil {
			return nil, err
		}
		if err := s.seen.checkUnchanged(name, info, b); err != nil {
			return nil, err
		}
	}
	return before, nil
}

// loadOrLink reads a file, or a link's target path; nil if nothing exists.
func loadOrLink(ws *workspace.Workspace, name string) ([]byte, fs.FileInfo, error) {
	info, err := ws.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return loadFile(ws, name, maxChanged)
	}
	to, err := ws.Readlink(name)
	return []byte(to), info, err
}

// changeSet is a planned change of several files.
type changeSet struct {
	ws             *workspace.Workspace
	seen           *SeenFiles
	dryRun         bool
	title          string                 // the files in the patch
	modes          map[string]fs.FileMode // of existing files
	changes        []patch.Change
	files          []patchedFile
	diff           strings.Builder
	added, deleted int
	writtenHashes  map[string]string // what was written
	hunks          int               // number of separable hunks
	hunkText       string            // which hunks are applied; empty if all are
}

// patchedFile is one file's result for the model.
type patchedFile struct {
	Path      string `json:"path"`
	From      string `json:"from,omitzero"`
	Operation string `json:"operation"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Note      string `json:"note,omitzero"`
}

func (s *changeSet) addChange(c patch.Change) error {
	if bytes.IndexByte(c.New, 0) >= 0 {
		return message.Errorf("%s: the patch contains a NUL byte; this tool writes text", c.Path)
	}
	f := patchedFile{Path: c.Path, From: c.From, Operation: "updated"}
	diff, added, deleted := c.Diff(s.newMode(c))
	f.Additions, f.Deletions = added, deleted
	switch {
	case c.From != "":
		f.Operation = "moved"
	case c.New == nil:
		f.Operation = "deleted"
	case c.Old == nil:
		f.Operation = "created"
	}
	if c.New != nil && (c.Old == nil || c.From != "" && !strings.EqualFold(c.From, c.Path)) {
		f.Note = caseNote(s.ws, c.Path)
	}
	if c.Loose {
		f.Note = tool.JoinNotes(f.Note, "matched although line ends or white space at the end of lines differ")
	}
	for _, what := range c.Assumptions {
		f.Note = tool.JoinNotes(f.Note, what)
	}
	if c.New == nil && s.modes[c.Path]&fs.ModeSymlink != 0 {
		f.Note = "it was a link; what it pointed to is still there"
	}
	s.changes, s.files = append(s.changes, c), append(s.files, f)
	s.diff.WriteString(diff)
	s.added, s.deleted = s.added+f.Additions, s.deleted+f.Deletions
	return nil
}

// withExecute returns a mode with execute permission for everyone who may read, or for no one.
func withExecute(perm fs.FileMode, m patch.Mode) fs.FileMode {
	switch m {
	case patch.Executable:
		return perm | perm>>2&0o111
	case patch.Plain:
		return perm &^ 0o111
	}
	return perm
}

// makesExecutable reports whether a change makes a name executable that did not exist or was not executable.
func (s *changeSet) makesExecutable(c patch.Change) bool {
	const plain = 0o644
	was, known := s.modes[cmp.Or(c.From, c.Path)]
	if !known {
		was = plain
	}
	runs := withExecute(was.Perm(), c.Mode)&0o111 != 0
	return c.New != nil && runs && (c.From != "" || was.Perm()&0o111 == 0)
}

// maxTitles limits how many files a title names.
const maxTitles = 3

// namesTitle names files, or the first few of many.
func namesTitle(names []string) string {
	if more := len(names) - maxTitles; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxTitles], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (s *changeSet) plan() tool.Plan {
	kind := tool.Write
	if s.dryRun {
		kind = tool.Read
	}
	var names []string
	for _, f := range s.files {
		names = append(names, f.Path)
	}
	plan := tool.Plan{Title: cmp.Or(namesTitle(names), "nothing"),
		Preview: display.Diff{Unified: s.diff.String(), Added: s.added, Deleted: s.deleted}, Hunks: s.hunks}
	for _, c := range s.changes {
		if c.From != "" {
			plan.Effects = append(plan.Effects, tool.Effect{Kind: kind, Target: c.From})
		}
		plan.Effects = append(plan.Effects, tool.Effect{Kind: kind, Target: c.Path})
		if !s.dryRun && s.makesExecutable(c) {
			plan.Executable = append(plan.Executable, c.Path)
		}
	}
	if len(plan.Effects) == 0 { // a file created and deleted again
		plan.Effects = []tool.Effect{{Kind: tool.Read, Target: "."}}
	}
	return plan
}

type patchResult struct {
	OK            bool          `json:"ok"`
	Applied       bool          `json:"applied"`
	Files         []patchedFile `json:"files"`
	Additions     int           `json:"additions"`
	Deletions     int           `json:"deletions"`
	Diff          string        `json:"diff"`
	DiffTruncated bool          `json:"diff_truncated"`
}
