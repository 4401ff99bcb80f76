package rule

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/policy"
	"coder/internal/policy/risk"
)

// NamedFiles returns the files that a line names, each by its full path, and their link targets: only these secret
// files may be shown to the line, since it was judged by them. Patterns and variables name nothing.
func (b *Book) NamedFiles(r risk.Report) (files []string) {
	add := func(word string) {
		if file := b.absPath(word); !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	words := slices.Concat(r.Reads, r.Writes)
	for _, c := range r.Simple {
		if nameOnlyCommands[path.Base(c.Name)] {
			continue
		}
		for _, w := range c.Args {
			for _, name := range plainWords(w) {
				words = append(words, b.pathFrom(c.Dir, name))
			}
		}
	}
	for _, word := range words {
		if strings.ContainsAny(word, "*?[$`") {
			continue
		}
		add(word)
		if real := b.realPath(word); real != "" {
			add(real)
		}
	}
	return files
}

// pathFrom returns the path of a word for a command run in dir, which may be unknown.
func (b *Book) pathFrom(dir, word string) string {
	if dir == "" || dir == b.Root || path.IsAbs(word) || strings.HasPrefix(word, "~") || strings.HasPrefix(word, "file://") {
		return word
	}
	return path.Join(dir, word)
}

// absPath returns the full path of a file.
func (b *Book) absPath(file string) string {
	if file = b.place(file); !filepath.IsAbs(file) {
		file = filepath.Join(b.Root, file)
	}
	return file
}

// realPath returns the link target of a file; empty if it is the same, or unknown.
func (b *Book) realPath(file string) string {
	if b.Real == nil {
		return ""
	}
	full := b.absPath(file)
	if real := b.Real(full); real != full {
		return real
	}
	return ""
}

// plainWords returns the files that a word of a command names literally.
func plainWords(word string) (list []string) {
	if i := strings.IndexByte(word, '='); i >= 0 && strings.HasPrefix(word, "-") {
		word = word[i+1:]
	}
	if strings.HasPrefix(word, "-") {
		if len(word) < 3 || word[1] == '-' {
			return nil
		}
		// A value may follow the first letter of an option directly, or begin at the first path character.
		if i := strings.IndexAny(word, "./~"); i > 2 {
			list = append(list, word[i:])
		}
		return append(list, word[2:])
	}
	if word == "" {
		return nil
	}
	word = strings.TrimPrefix(word, "@") // curl and others read @file
	list = []string{word}
	if _, file, ok := strings.Cut(word, ":"); ok && file != "" {
		list = append(list, file) // git show HEAD:file, scp file host:file
	}
	before, rest, _ := strings.Cut(word, "{")
	if inner, after, ok := strings.Cut(rest, "}"); ok {
		for alternative := range strings.SplitSeq(inner, ",") {
			list = append(list, before+alternative+after)
		}
	}
	return list
}

// shownByGit returns the tracked secret files that a git command
// may show from its own store, where nothing can hide them.
func (b *Book) shownByGit(c risk.Command) []string {
	if path.Base(c.Name) != "git" || b.Tracked == nil || !showsContent(c.Args) {
		return nil
	}
	tracked := b.Tracked()
	from := slices.Index(c.Args, "--") + 1
	if from == 0 || from == len(c.Args) {
		return tracked
	}
	return slices.DeleteFunc(slices.Clone(tracked), func(file string) bool {
		return !slices.ContainsFunc(c.Args[from:], func(dir string) bool {
			rel, err := filepath.Rel(b.absPath(dir), b.absPath(file))
			return err != nil || filepath.IsLocal(rel) || strings.ContainsAny(dir, "*?[:")
		})
	})
}

// gitShowCommands are the git subcommands that print file contents.
var gitShowCommands = map[string]bool{
	"diff": true, "show": true, "log": true, "grep": true, "cat-file": true, "blame": true, "annotate": true, "archive": true, "whatchanged": true,
	"format-patch": true, "stash": true, "diff-tree": true, "diff-index": true, "diff-files": true, "range-diff": true, "difftool": true, "reflog": true, "bundle": true,
}

// showsContent reports whether git would print file contents.
// With some options it prints only names, or numbers.
func showsContent(args []string) bool {
	sub := ""
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-C" || a == "-c" || a == "--git-dir" || a == "--work-tree" || a == "--namespace":
			i++
		case !strings.HasPrefix(a, "-"):
			sub, args = a, args[i+1:]
			i = len(args)
		}
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return a == w || strings.HasPrefix(a, w+"=") })
		})
	}
	patch := slices.ContainsFunc(args, func(a string) bool {
		return hasCombinedFlag(a, "puULcm", "SGOnl") || a == "--check" ||
			strings.HasPrefix(a, "--patch") || strings.HasPrefix(a, "--unified") || strings.HasPrefix(a, "--word-diff") || strings.HasPrefix(a, "--color-words") ||
			a == "--cc" || strings.HasPrefix(a, "--diff-merges") || a == "--remerge-diff" || a == "--full-diff" || a == "--binary"
	})
	switch sub {
	case "status":
		return slices.ContainsFunc(args, func(a string) bool { return hasCombinedFlag(a, "v", "u") || strings.HasPrefix(a, "--v") })
	case "log", "reflog", "stash":
		return patch || sub == "stash" && has("show", "-p")
	case "diff", "show", "whatchanged", "diff-tree", "diff-index", "diff-files":
		return patch || !has("--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--summary", "--quiet", "-q", "-s", "--no-patch", "--dirstat", "--compact-summary", "--raw")
	}
	return gitShowCommands[sub]
}

// hasCombinedFlag reports whether a word combines one-letter options and has one of
// some, unless the first takes the rest of the word as its value.
func hasCombinedFlag(word, some, valued string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && !strings.ContainsAny(word[1:2], valued) && strings.ContainsAny(word[1:], some)
}

// unknownFilesReason is the reason for a line that reads files known only at run time.
const unknownFilesReason = "this command may read any file, and secret files are not hidden from it"

// judgeVague judges a line that may read files it does not name, where
// secret files are not hidden: anywhere, or outside the workspace.
func (b *Book) judgeVague(p Preset, r risk.Report, hidden bool) (finding, bool) {
	if p.Unchecked || hidden && !b.leavesWorkspace(r.Command) {
		return finding{}, false
	}
	for _, c := range r.Simple {
		name := path.Base(c.Name)
		further := slices.ContainsFunc(c.Args, func(a string) bool {
			switch name {
			case "git": // untracked files
				return a == "--no-index" || a == "--untracked"
			case "jq": // files that no word names
				return strings.Contains(a, "import") || strings.Contains(a, "include") || strings.HasPrefix(a, "-f") || strings.HasPrefix(a, "--from-file")
			}
			return false
		})
		variable := slices.ContainsFunc(c.Args, func(word string) bool { return strings.Contains(word, "$") })
		switch {
		case nameOnlyCommands[name], !c.ReadOnly: // commands that do more than read need approval anyway
		case !c.Exact && (variable || !hidden), c.AddsArgs, c.Dir == "" && !hidden, further:
			return finding{verdict: policy.Ask, text: unknownFilesReason, rule: "secret files", notWaivable: true}, true
		}
	}
	return finding{}, false
}

// isInside reports whether a file is in the workspace, also with links resolved.
func (b *Book) isInside(file string) bool {
	if filepath.IsAbs(b.place(file)) || strings.HasPrefix(b.place(file), "../") || b.place(file) == ".." {
		return false
	}
	real := b.realPath(file)
	return real == "" || !filepath.IsAbs(b.place(real))
}

// leavesWorkspace reports whether a line mentions anything outside the workspace: a full path, a parent folder,
// a home, or an environment variable, which may contain one.
func (b *Book) leavesWorkspace(line string) bool {
	if strings.Contains(line, "..") || strings.Contains(line, "~") {
		return true
	}
	for i, c := range line {
		rest := line[i:]
		switch {
		case c == '$':
			if name := strings.TrimLeft(rest[1:], "{#!"); name != "" && (name[0] == '_' || name[0] >= 'A' && name[0] <= 'Z') {
				return true // named like an environment variable
			}
		case c == '/' && (i == 0 || strings.ContainsRune(" \t\n'\"=:,({<>;|&`", rune(line[i-1]))):
			end := strings.IndexAny(rest, " \t\n'\",;|&)}<>`")
			if end < 0 {
				end = len(rest)
			}
			if file := path.Clean(rest[:end]); file != "/dev/null" && filepath.IsAbs(b.place(file)) {
				return true
			}
		}
	}
	return false
}
