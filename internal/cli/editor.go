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
	switch {
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
		for _, name := range t.app.NamedResources(word[1:]) {
			end := " "
			if strings.HasSuffix(name, ":") {
				end = ""
			}
			choices = append(choices, lineedit.Choice{Text: mention.Ref{Path: name, Quoted: end != "" && !mention.Plain(name)}.String() + end})
		}
		choices = append(choices, t.completePath(word)...)
	case strings.HasPrefix(before, "/resume "):
		words(t.app.Store().IDs())
	case strings.HasPrefix(before, "/model "):
		words(t.app.Config.Provider.Models)
	}
	return start, choices
}

// completePath offers the files whose name goes on from word. Hidden ones are
// offered only if they are asked for.
func (t *terminal) completePath(word string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(strings.TrimPrefix(word, "@"))
	entries, err := fs.ReadDir(repofile.Below(t.app.Root), filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") || len(choices) >= maxChoices {
			continue
		}
		text := "@" + dir + e.Name()
		if e.IsDir() {
			text += "/"
		} else {
			text = mention.Ref{Path: dir + e.Name(), Quoted: !mention.Plain(dir + e.Name())}.String() + " "
		}
		choices = append(choices, lineedit.Choice{Text: text})
	}
	return choices
}
