package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"coder/internal/app"
	"coder/internal/authored/mention"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/repofile"
	"coder/internal/host/stdio"
	"coder/internal/policy/mode"
	"coder/internal/slash"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/tty"
)

// openEditor opens the user's editor.
func (t *terminal) openEditor(ctx context.Context, text string) (string, error) {
	program := cmp.Or(t.invocation.Getenv("VISUAL"), t.invocation.Getenv("EDITOR"), "vi")
	path, done, err := t.writeDraftFile(text)
	if err != nil {
		return text, err
	}
	defer done()
	words := strings.Fields(program)
	cmd := t.app.Launcher().Command(ctx, words[0], append(words[1:], path)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stdio.Grace
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = t.in, t.out, t.out, t.app.Root
	putRight := tty.SaveMode(t.in)
	err = cmd.Run()
	putRight()
	// not ended by the user: what they saved counts
	ended := ctx.Err() != nil || cmd.ProcessState != nil && !cmd.ProcessState.Exited()
	if err != nil {
		err = message.Errorf("%s: %w", program, err)
	}
	if err != nil && !ended {
		return text, err
	}
	written, notRead := repofile.ReadOwn(path, maxPromptBytes)
	if notRead != nil {
		return text, errors.Join(err, notRead)
	}
	return strings.TrimRight(string(written), "\n"), err
}

// pager returns what shows text in the program that PAGER names; nil if it names none.
func (t *terminal) pager() func(context.Context, *os.File, string) error {
	words := strings.Fields(t.invocation.Getenv("PAGER"))
	if len(words) == 0 {
		return nil
	}
	return func(ctx context.Context, terminal *os.File, text string) error {
		cmd := t.app.Launcher().Command(ctx, words[0], words[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stdio.Grace
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = strings.NewReader(text), terminal, terminal, t.app.Root
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1} // its Ctrl+C is its own
		// a pager may be left before the end of the text
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			return message.Errorf("%s: %w", words[0], err)
		}
		return nil
	}
}

// recoverEditorText returns the text saved in an editor when the program was killed, if it belongs to this
// session, or nothing was sent in its own. It removes the file.
func (t *terminal) recoverEditorText() (text string) {
	if t.app.Home == "" {
		return ""
	}
	store := t.app.Store()
	dir := filepath.Join(t.app.Home, app.DraftsDir)
	entries, _ := os.ReadDir(dir) // the folder may not exist
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), picturePrefix) &&
			t.invocation.Now().Sub(info.ModTime()) > maxDraftAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // retried next time
		}
		rest, ok := strings.CutPrefix(e.Name(), draftPrefix)
		name, _, _ := strings.Cut(rest, ".md")
		info, err := e.Info()
		if !ok || err != nil || !strings.Contains(name, ".") {
			continue
		}
		id := name[:strings.LastIndexByte(name, '.')]
		own := id == t.session().ID || (!slices.Contains(store.AllSessions(), id) || store.IsUnused(id)) &&
			!t.isOpenElsewhere(id)
		if !own && t.invocation.Now().Sub(info.ModTime()) < maxDraftAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if written, err := repofile.ReadOwn(path, maxPromptBytes); own && err == nil && strings.HasSuffix(e.Name(), ".md") {
			text = strings.TrimRight(string(written), "\n")
		}
		_ = os.Remove(path) // retried next time
	}
	return text
}

// draftPrefix begins the names of editor files; the session id follows. An abandoned file is kept for
// maxDraftAge.
const (
	draftPrefix = "draft-"
	maxDraftAge = 60 * 24 * time.Hour
)

// writeDraftFile writes text to a file for an editor, where the session finds it again if this process is killed.
// done removes it, and the editor's own files beside it.
func (t *terminal) writeDraftFile(text string) (path string, done func(), err error) {
	dir := filepath.Join(t.app.Home, app.DraftsDir)
	if t.app.Home == "" || os.MkdirAll(dir, 0o700) != nil {
		dir = os.TempDir()
	}
	f, err := os.CreateTemp(dir, draftPrefix+t.session().ID+".*.md")
	if err != nil {
		return "", nil, err
	}
	done = func() {
		names, _ := filepath.Glob(f.Name() + "*") // the pattern is valid
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

// maxChoices is the most completions offered.
const maxChoices = 200

// completeInput offers completions at the cursor: a command at the start of the line, its argument, or a file
// after an @.
func (t *terminal) completeInput(draft string, cursor int) (start int, choices []lineedit.Choice) {
	before := draft[:cursor]
	if start, typed, ok := mentionBefore(before); ok {
		ctx, stop := context.WithTimeout(context.Background(), treeTimeout)
		defer stop()
		t.paths.Wait(ctx)
		choices, _ := t.completeSimilar(typed, strings.HasPrefix(before[start:], `@"`))
		for _, c := range t.completeEntries(typed) { // ignored files too
			if !slices.Contains(choices, c) {
				choices = append(choices, c)
			}
		}
		return start, slices.Concat(t.completeResource(typed), choices)
	}
	start = strings.LastIndexAny(before, " \t\n") + 1
	word := before[start:]
	command, typed, argument := strings.Cut(before, " ")
	switch {
	case strings.HasPrefix(before, "!"):
		return t.completeInShell(before)
	case !strings.HasPrefix(before, "/"):
	case !argument:
		return 0, t.completeCommand(before)
	case command == "/resume":
		return len(command) + 1, t.completeSession(typed)
	case command == "/rewind":
		return len(command) + 1, t.completeMessage(typed)
	default:
		for _, cmd := range t.session().Commands() {
			if "/"+cmd.Name == command {
				choices = append(choices, t.completeArgument(nextUsageWords(cmd.Args, strings.Fields(typed[:len(typed)-len(word)])),
					word)...)
				if len(choices) == 0 {
					files, from := t.completeSpacedPath(cmd.Args, typed)
					return len(before) - len(typed) + from, files
				}
			}
		}
	}
	return start, choices
}

// completeSpacedPath offers files for a command's arguments if the file name contains spaces, from the byte
// where the name begins.
func (t *terminal) completeSpacedPath(usage, typed string) (choices []lineedit.Choice, from int) {
	for from < len(typed) {
		words := nextUsageWords(usage, strings.Fields(typed[:from]))
		if slices.Contains(words, "FILE") || slices.Contains(words, "PATH") {
			return t.completeFile(typed[from:]), from
		}
		blank := strings.IndexByte(typed[from:], ' ')
		if blank < 0 {
			break
		}
		from += blank + 1
	}
	return nil, 0
}

// treeTimeout is how long Tab waits for a tree that was never read.
const treeTimeout = 2 * time.Second

// modelsTimeout is how long Tab waits for an endpoint's models.
const modelsTimeout = time.Second

// mentionBefore returns the file name being typed before the cursor. In a shell command an @ has another
// meaning.
func mentionBefore(before string) (start int, typed string, ok bool) {
	if strings.HasPrefix(strings.TrimSpace(before), "!") {
		return 0, "", false
	}
	return mention.FindUnfinished(before)
}

// suggestWhileTyping offers commands while one is typed, and files while a name is typed.
func (t *terminal) suggestWhileTyping(draft string, cursor int) (start int, find func() ([]lineedit.Choice, bool)) {
	if before := draft[:cursor]; strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \n") {
		commands := t.completeCommand(before)
		return 0, func() ([]lineedit.Choice, bool) { return commands, false }
	}
	start, typed, ok := mentionBefore(draft[:cursor])
	if !ok {
		return 0, nil
	}
	quoted := strings.HasPrefix(draft[start:cursor], `@"`)
	resources := t.completeResource(typed)
	return start, func() ([]lineedit.Choice, bool) {
		files, more := t.completeSimilar(typed, quoted)
		return slices.Concat(resources, files), more
	}
}

// maxSimilarFiles is the most files offered for a similar path.
const maxSimilarFiles = 50

// completeSimilar offers the files whose path resembles the typed text.
func (t *terminal) completeSimilar(typed string, quoted bool) (choices []lineedit.Choice, more bool) {
	paths, more := t.paths.Find(typed, maxSimilarFiles)
	for _, path := range paths {
		if path = t.offeredPath(path); path != "" {
			choices = append(choices, fileChoice(path, quoted))
		}
	}
	if len(paths) == 0 && strings.Contains(typed, "/") { // below a link
		choices = t.completeEntries(typed)
	}
	return choices, more
}

// offeredPath returns a path to offer: a link to a folder can be continued, and a link that leads nowhere,
// or out of the workspace, is not offered.
func (t *terminal) offeredPath(path string) string {
	at := filepath.Join(t.app.Root, path)
	if info, err := os.Lstat(at); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return ""
	}
	if root, err := filepath.EvalSymlinks(t.app.Root); err == nil {
		if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
			return ""
		}
	}
	if info, err := os.Stat(real); err == nil && info.IsDir() && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path
}

// fileChoice returns the choice for a file, or for a folder, whose path can be continued.
func fileChoice(path string, quoted bool) lineedit.Choice {
	quoted = quoted || !mention.IsPlain(strings.TrimSuffix(path, "/"))
	switch folder := strings.HasSuffix(path, "/"); {
	case folder && quoted:
		return lineedit.Choice{Text: "@" + mention.Quote(path)}
	case folder:
		return lineedit.Choice{Text: "@" + path}
	}
	return lineedit.Choice{Text: mention.Ref{Path: path, Quoted: quoted}.String() + " "}
}

// completeEntries offers the entries of a folder whose names begin with the typed text.
func (t *terminal) completeEntries(typed string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(typed)
	for _, e := range t.dirEntries(dir, name) {
		path := dir + e.Name()
		if e.IsDir() {
			path += "/"
		}
		if e.Type()&fs.ModeSymlink != 0 && !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
			path = t.offeredPath(path)
		}
		if path != "" {
			choices = append(choices, fileChoice(path, false))
		}
	}
	return choices
}

// completeResource offers the resources of MCP servers whose names begin with the typed text.
func (t *terminal) completeResource(typed string) (choices []lineedit.Choice) {
	for _, name := range t.host.Inside().CompleteResources(typed) {
		if !strings.HasSuffix(name, ":") {
			name += " "
		}
		choices = append(choices, lineedit.Choice{Text: "@" + name})
	}
	return choices
}

func (t *terminal) completeCommand(typed string) (choices []lineedit.Choice) {
	for _, cmd := range t.session().Commands() {
		if name := "/" + cmd.Name; strings.HasPrefix(name, typed) {
			if !cmd.IsCustom {
				cmd.Help = t.invocation.printer.TranslateText(cmd.Help)
			}
			choices = append(choices, lineedit.Choice{Text: name + " ", Note: cmd.Help})
		}
	}
	return choices
}

// nextUsageWords returns the words that its usage allows next in a command, after those written. Capitals are
// placeholders; several optional words, [force] [dryRestore], may be in any order.
func nextUsageWords(usage string, written []string) (words []string) {
	if all := strings.Split(strings.Trim(usage, "[]"), "] ["); len(all) > 1 &&
		!strings.ContainsFunc(usage, func(r rune) bool { return unicode.IsUpper(r) || r == '|' }) {
		return slices.DeleteFunc(all, func(w string) bool { return slices.Contains(written, w) })
	}
	usage = strings.NewReplacer("[:", " :", "[", " ", "]", " ").Replace(usage)
	for form := range strings.SplitSeq(usage, "|") {
		form := strings.Fields(form)
		fits := len(form) > len(written)
		for i, w := range written {
			fits = fits && (form[i] == w || form[i] == strings.ToUpper(form[i]))
		}
		if fits && !slices.Contains(words, form[len(written)]) {
			words = append(words, form[len(written)])
		}
	}
	return words
}

// completeArgument offers values for the words of a usage.
func (t *terminal) completeArgument(words []string, typed string) (choices []lineedit.Choice) {
	for _, w := range words {
		values := []string{w}
		switch w {
		case "NAME":
			ctx, stop := context.WithTimeout(context.Background(), modelsTimeout)
			values = t.app.FetchModelNames(ctx)
			stop()
		case "PRESET":
			values = mode.Presets()
		case "FORMAT":
			values = slash.Formats()
		case "KEY":
			values = nil
			for _, r := range t.app.Report.Rows() {
				values = append(values, r.Key)
			}
		case "SERVER":
			values = nil
			for _, s := range t.app.MCPServers() {
				values = append(values, s.Name)
			}
		case "PATH", "FILE":
			choices = append(choices, t.completeFile(typed)...)
			continue
		default:
			if w != strings.ToLower(w) || strings.HasPrefix(w, ":") {
				continue
			}
		}
		for _, v := range values {
			if strings.HasPrefix(v, typed) || w == "NAME" && strings.Contains(strings.ToLower(v), strings.ToLower(typed)) {
				choices = append(choices, lineedit.Choice{Text: v + " "})
			}
		}
	}
	return choices[:min(len(choices), maxChoices)]
}

// completeSession offers the sessions whose id or title contains the typed text, newest first.
func (t *terminal) completeSession(typed string) (choices []lineedit.Choice) {
	heads, _ := t.app.Store().ListHeads(context.Background())
	for _, h := range heads {
		title := cmp.Or(h.Meta.Title, t.invocation.printer.T("nothing was asked"))
		if h.ID == t.session().ID || !strings.Contains(strings.ToLower(h.ID+" "+title), strings.ToLower(typed)) {
			continue
		}
		choices = append(choices, lineedit.Choice{Text: h.ID,
			Note: h.Updated.Local().Format("2006-01-02 15:04") + "  " + sanitize.Line(title, 40)})
	}
	return choices[:min(len(choices), maxChoices)]
}

// completeMessage offers the user's messages to go back to, by number, and the undo of that.
func (t *terminal) completeMessage(typed string) (choices []lineedit.Choice) {
	messages, _ := t.argumentList("/rewind")
	for _, m := range messages.Items {
		if strings.HasPrefix(m.Choice.Text, typed) {
			choices = append(choices, m.Choice)
		}
	}
	if undo := "undo"; strings.HasPrefix(undo, typed) {
		choices = append(choices, lineedit.Choice{Text: undo})
	}
	return choices[:min(len(choices), maxChoices)]
}

// completeInShell offers files for the last word of a shell command, quoted for the shell.
func (t *terminal) completeInShell(line string) (start int, choices []lineedit.Choice) {
	w := parseLastShellWord(line, t.invocation.Getenv)
	dir, name := filepath.Split(w.text)
	for _, e := range t.dirEntries(dir, name) {
		choices = append(choices, lineedit.Choice{Text: w.complete(e.Name(), e.IsDir())})
	}
	return w.start, choices
}

// completeFile offers files for a word.
func (t *terminal) completeFile(word string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(word)
	for _, e := range t.dirEntries(dir, name) {
		end := " "
		if e.IsDir() {
			end = "/"
		}
		choices = append(choices, lineedit.Choice{Text: dir + e.Name() + end})
	}
	return choices
}

// dirEntries returns the entries of a folder whose names begin with name: in the workspace, or anywhere if
// dir is absolute. Hidden ones are included only if asked for.
func (t *terminal) dirEntries(dir, name string) []fs.DirEntry {
	var folder fs.FS = repofile.NewRoot(t.app.Root)
	at := filepath.ToSlash(filepath.Clean(dir))
	if below, ok := strings.CutPrefix(dir, "~/"); ok {
		folder, at = repofile.OwnDir(filepath.Join(t.invocation.Getenv("HOME"), below)), "."
	} else if filepath.IsAbs(dir) {
		folder, at = repofile.OwnDir(dir), "."
	}
	entries, err := fs.ReadDir(folder, at)
	if err != nil {
		return nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".")
	})
	return entries[:min(len(entries), maxChoices)]
}
