package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/app"
	"coder/internal/authored/mention"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/host/stdio"
	"coder/internal/ui/lineedit"
)

// edit lets the person write in their own editor.
func (t *terminal) edit(ctx context.Context, text string) (string, error) {
	program := cmp.Or(t.inv.Getenv("VISUAL"), t.inv.Getenv("EDITOR"), "vi")
	path, done, err := t.draft(text)
	if err != nil {
		return text, err
	}
	defer done()
	words := strings.Fields(program)
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stdio.Grace
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = t.in, t.out, t.out, t.app.Root, t.app.ChildEnv()
	if err := cmd.Run(); err != nil {
		return text, fmt.Errorf("%s: %w", program, err)
	}
	written, err := repofile.Own(path, promptLimit)
	return strings.TrimRight(string(written), "\n"), err
}

// draft puts text into a file for an editor, where it is swept if this process is
// killed. Done removes it, and what the editor left beside it.
func (t *terminal) draft(text string) (path string, done func(), err error) {
	dir := filepath.Join(t.app.Home, app.Drafts)
	if t.app.Home == "" || os.MkdirAll(dir, 0o700) != nil {
		dir = os.TempDir()
	}
	release, err := atomicfile.Hold(dir)
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(dir, atomicfile.Prefix+"*.md")
	if err != nil {
		release()
		return "", nil, err
	}
	done = func() {
		defer release()
		names, _ := filepath.Glob(f.Name() + "*") // the pattern is good
		for _, name := range names {
			_ = os.Remove(name)
		}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		done()
		return "", nil, err
	}
	return f.Name(), done, nil
}

// maxChoices is how many completions are offered at most.
const maxChoices = 200

// complete offers what may stand at the cursor: a command at the start of the
// line, its argument, or a file after an @.
func (t *terminal) complete(draft string, cursor int) (start int, choices []lineedit.Choice) {
	before := draft[:cursor]
	start = strings.LastIndexAny(before, " \t\n") + 1
	word := before[start:]
	words := func(list []string) {
		for _, w := range list {
			if strings.HasPrefix(w, word) && len(choices) < maxChoices {
				choices = append(choices, lineedit.Choice{Text: w + " "})
			}
		}
	}
	switch command, typed, _ := strings.Cut(before, " "); {
	case start == 0 && strings.HasPrefix(word, "/"):
		for _, cmd := range t.session.Commands() {
			if name := "/" + cmd.Name; strings.HasPrefix(name, word) {
				if !cmd.Authored {
					cmd.Help = t.inv.words.Said(cmd.Help)
				}
				choices = append(choices, lineedit.Choice{Text: name + " ", Note: cmd.Help})
			}
		}
	case strings.HasPrefix(word, "@"):
		choices = t.completePath(word)
	case strings.HasPrefix(before, "!"):
		choices = t.completeFile(strings.TrimLeft(word, "!"), word[:len(word)-len(strings.TrimLeft(word, "!"))])
	case command == "/resume":
		choices = t.completeSession(typed)
		start = len(command) + 1
	case command == "/model":
		words(t.app.Config.Provider.Models)
	case strings.HasPrefix(command, "/"):
		for _, cmd := range t.session.Commands() {
			if "/"+cmd.Name == command && typed == word {
				words(arguments(cmd.Args))
			}
		}
	}
	return start, choices
}

// arguments are the words that a command takes, as its usage names them: those
// in capitals stand for others.
func arguments(usage string) (all []string) {
	for word := range strings.FieldsFuncSeq(usage, func(r rune) bool { return strings.ContainsRune("[]| ", r) }) {
		if word == strings.ToLower(word) {
			all = append(all, word)
		}
	}
	return all
}

// completeSession offers the sessions whose id or title holds what is typed, the
// newest first.
func (t *terminal) completeSession(typed string) (choices []lineedit.Choice) {
	heads, _ := t.app.Store().Heads(context.Background())
	for _, h := range heads {
		title := cmp.Or(h.Meta.Title, t.inv.words.T("nothing was asked"))
		if h.ID == t.session.ID || !strings.Contains(strings.ToLower(h.ID+" "+title), strings.ToLower(typed)) {
			continue
		}
		choices = append(choices, lineedit.Choice{Text: h.ID, Note: h.Updated.Local().Format("2006-01-02 15:04") + "  " + oneLine(title)})
	}
	return choices[:min(len(choices), maxChoices)]
}

// completeFile offers the files that a word of a command may go on to.
func (t *terminal) completeFile(word, lead string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(word)
	for _, e := range t.entries(dir, name) {
		text := lead + dir + e.Name()
		if strings.ContainsAny(text, " '\"$&;|<>()`\\*?") {
			continue // it would have to be quoted
		}
		if e.IsDir() {
			text += "/"
		} else {
			text += " "
		}
		choices = append(choices, lineedit.Choice{Text: text})
	}
	return choices
}

// entries are what a folder of the workspace holds under names that go on from
// name. Hidden ones are among them only if they are asked for.
func (t *terminal) entries(dir, name string) []fs.DirEntry {
	entries, err := fs.ReadDir(repofile.Below(t.app.Root), filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".")
	})
	return entries[:min(len(entries), maxChoices)]
}

// Bounds of a look through the tree.
const (
	maxTree  = 200_000
	mostSeen = 50 // files that are offered because their path is alike
)

// alike are the files of the tree whose path has the letters of typed in their
// order, the best first: those that stand together, in the name, near its start.
func alike(tree fs.FS, typed string) []string {
	type match struct {
		path string
		rank int
	}
	var found []match
	seen := 0
	want := strings.ToLower(typed)
	_ = fs.WalkDir(tree, ".", func(path string, e fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxTree {
			return fs.SkipDir
		}
		name := e.Name()
		if e.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor" || name == "target") {
			return fs.SkipDir
		}
		if e.IsDir() {
			return nil
		}
		if rank, ok := likeness(strings.ToLower(path), want); ok {
			found = append(found, match{path, rank})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.path), len(b.path)), strings.Compare(a.path, b.path))
	})
	var paths []string
	for _, m := range found[:min(len(found), mostSeen)] {
		paths = append(paths, m.path)
	}
	return paths
}

// likeness is how little a path is like what is typed, if it has its letters.
func likeness(path, want string) (rank int, ok bool) {
	base := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case strings.HasPrefix(base, want):
		return 0, true
	case strings.Contains(base, want):
		return 1, true
	case strings.Contains(path, want):
		return 2, true
	}
	at, gaps := 0, 0
	for _, r := range want {
		i := strings.IndexRune(path[at:], r)
		if i < 0 {
			return 0, false
		}
		gaps += i
		at += i + len(string(r))
	}
	return 3 + gaps, true
}

// completePath offers the files whose name goes on from word, and those of the
// whole tree whose path is like it.
func (t *terminal) completePath(word string) (choices []lineedit.Choice) {
	typed := strings.TrimPrefix(word, "@")
	dir, name := filepath.Split(typed)
	file := func(path string) lineedit.Choice {
		return lineedit.Choice{Text: mention.Ref{Path: path, Quoted: !mention.Plain(path)}.String() + " "}
	}
	for _, e := range t.entries(dir, name) {
		if e.IsDir() {
			choices = append(choices, lineedit.Choice{Text: "@" + dir + e.Name() + "/"})
		} else {
			choices = append(choices, file(dir+e.Name()))
		}
	}
	if typed == "" || len(choices) == 1 {
		return choices
	}
	for _, path := range alike(repofile.Below(t.app.Root), typed) {
		if c := file(path); !slices.Contains(choices, c) {
			choices = append(choices, c)
		}
	}
	return choices
}
